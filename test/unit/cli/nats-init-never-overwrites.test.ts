import { readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exitCodes } from "#shared/process/lifecycle.ts";
import { natsCommand } from "../../../services/cli/commands/nats.ts";
import { folderOfTest } from "../../harness/temporary-folder.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";

const secrets = ["gateway.creds", "machines.seed", "operator.seed", "system.creds"];

async function init(folder: string, ...flags: readonly string[]): Promise<{ out: string; err: string }> {
  const said = { out: "", err: "" };
  const command = natsCommand({
    environment: {},
    stdout: { write: (text) => (said.out += text) },
    stderr: { write: (text) => (said.err += text) },
    clock: new TurnableClock(),
  });
  await command.parseAsync(["init", folder, ...flags], { from: "user" });
  return said;
}

async function contentOf(folder: string): Promise<Readonly<Record<string, string>>> {
  const names = await readdir(folder);
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name), "utf8")] as const)),
  );
}

test.skipIf(process.platform === "win32")("the secrets of nats init are for their owner only", async () => {
  const folder = join(folderOfTest(), "nats");
  await init(folder);
  const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777;
  expect(await Promise.all(secrets.map((name) => modeOf(join(folder, name))))).toEqual(secrets.map(() => 0o600));
  expect(await modeOf(folder)).toBe(0o700);
});

test("no secret of nats init is in nats.conf or in what the command prints", async () => {
  const folder = folderOfTest();
  const { out, err } = await init(folder);
  const content = await contentOf(folder);
  const seeds = secrets.flatMap((name) => content[name]?.match(/\bS[OAU][A-Z2-7]{50,}/g) ?? []);
  expect(seeds).toHaveLength(secrets.length);
  for (const seed of seeds) expect(`${content["nats.conf"]}${out}${err}`).not.toContain(seed);
});

test("a second nats init changes nothing and says so, also when operator.seed is kept elsewhere", async () => {
  const folder = folderOfTest();
  const first = JSON.parse((await init(folder, "--json")).out);
  expect(first).toMatchObject({ outcome: "made", folder });
  expect(Object.keys(first.files).toSorted()).toEqual([...secrets, "nats.conf"].toSorted());
  await rm(join(folder, "operator.seed"));
  const before = await contentOf(folder);
  const second = JSON.parse((await init(folder, "--json")).out);
  expect(second.outcome).toBe("unchanged");
  expect(second.files).not.toHaveProperty("operator.seed");
  expect((await init(folder)).err).toContain("nothing was changed");
  expect(await contentOf(folder)).toEqual(before);
});

test("nats init refuses a folder with one of its files and without nats.conf, and leaves it as it is", async () => {
  const folder = folderOfTest();
  await writeFile(join(folder, "machines.seed"), "of another site");
  await expect(init(folder)).rejects.toMatchObject({
    exitCode: exitCodes.cannotCreate,
    message: expect.stringContaining("machines.seed and no nats.conf"),
  });
  expect(await contentOf(folder)).toEqual({ "machines.seed": "of another site" });
});

test("nats init says that it cannot write where it cannot", async () => {
  const file = join(folderOfTest(), "a-file");
  await writeFile(file, "");
  await expect(init(join(file, "nats"))).rejects.toMatchObject({
    exitCode: exitCodes.cannotCreate,
    message: expect.stringContaining("name a folder that this user may write"),
  });
});
