import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { agentConfig } from "../../services/agent/config.ts";
import { gatewayConfig } from "../../services/gateway/config.ts";
import type { SomeServer } from "../harness/found-servers.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { natsUrl } from "../harness/nats-server.ts";
import { anywhere, demonstration } from "../harness/start-trunkline.ts";
import { folderOfTests } from "../harness/temporary-folder.ts";
import { testPepper, trunkline } from "../harness/trunkline-command.ts";
import { TrunklineProcess } from "../harness/trunkline-process.ts";

const secret = "opensesame";
const folder = folderOfTests();
let nats: SomeServer;
let redis: SomeServer;

async function file(name: string, content: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, content);
  return path;
}

beforeAll(async () => void ([nats, redis] = await Promise.all([natsUrl(), redisUrl()])));
afterAll(() => Promise.all([nats.stop(), redis.stop()]));

test("a gateway runs on systemd credentials alone, and its environment holds no secret", async () => {
  await file("TRUNKLINE_NATS_URL", `${nats.url}\n`);
  await file("TRUNKLINE_REDIS_URL", `${redis.url}\n`);
  await file("TRUNKLINE_KEY_PEPPER", `${testPepper}\n`);
  const settings = { ...anywhere, CREDENTIALS_DIRECTORY: folder };
  await using gateway = await TrunklineProcess.start({ args: ["gateway"], settings });
  await gateway.logged("gateway ready");
  expect(await gateway.stderr()).not.toContain(testPepper);
  if (process.platform !== "linux") return;
  const environment = await readFile(`/proc/${gateway.processId}/environ`, "utf8");
  expect(environment).toContain("CREDENTIALS_DIRECTORY");
  expect(environment).not.toContain(testPepper);
});

test("a key command finds the store and the pepper in the files that its environment names", async () => {
  const { exitCode, stderr } = await trunkline(["keys", "list"], {
    TRUNKLINE_REDIS_URL_FILE: await file("redis-url", `${redis.url}\n`),
    TRUNKLINE_KEY_PEPPER_FILE: await file("pepper", testPepper),
  });
  expect(exitCode).toBe(0);
  expect(stderr).toContain(`Key store: Redis at ${new URL(redis.url).host}\n`);
});

describe("a secret setting", () => {
  test.each(["TRUNKLINE_NATS_URL", "TRUNKLINE_NATS_SYSTEM_URL", "TRUNKLINE_REDIS_URL"])(
    "%s of a gateway comes from the file that its name with _FILE names",
    async (name) => {
      const url = `${name.includes("REDIS") ? "redis" : "nats"}://:${secret}@127.0.0.1`;
      const config = gatewayConfig({ [`${name}_FILE`]: await file("url", `  ${url}\n`) });
      expect(JSON.stringify(config)).toContain(`"${url}"`);
    },
  );

  test("TRUNKLINE_RUNTIME_KEY of an agent comes from a file or a systemd credential", async () => {
    expect(agentConfig({ TRUNKLINE_RUNTIME_KEY_FILE: await file("key", secret) }).runtimeKey).toBe(secret);
    await file("TRUNKLINE_RUNTIME_KEY", secret);
    expect(agentConfig({ TRUNKLINE_RUNTIME_KEY: "", CREDENTIALS_DIRECTORY: folder }).runtimeKey).toBe(secret);
    await rm(join(folder, "TRUNKLINE_RUNTIME_KEY"));
  });

  test("a secret setting in a file is held to the same rules, and is not repeated", async () => {
    const short = { TRUNKLINE_KEY_PEPPER_FILE: await file("short", secret) };
    expect(() => gatewayConfig(short)).toThrow(/TRUNKLINE_KEY_PEPPER must be a secret of at least 32 bytes/);
    expect(() => gatewayConfig(short)).not.toThrow(new RegExp(secret));
  });

  test("a secret setting with a file that is missing or empty is an error that names the variable, beside all other errors", async () => {
    const environment = {
      TRUNKLINE_KEY_PEPPER_FILE: secret,
      TRUNKLINE_REDIS_URL_FILE: await file("empty", "\n"),
      TRUNKLINE_PORT: "http",
    };
    expect(() => gatewayConfig(environment)).toThrow(
      /TRUNKLINE_KEY_PEPPER_FILE must be a file that this user may read/,
    );
    expect(() => gatewayConfig(environment)).toThrow(/TRUNKLINE_REDIS_URL_FILE must be a file that is not empty/);
    expect(() => gatewayConfig(environment)).toThrow(/TRUNKLINE_PORT must be/);
    expect(() => gatewayConfig(environment)).not.toThrow(new RegExp(secret));
  });

  test("a secret setting that is set in two ways is an error, so that neither is ignored in silence", async () => {
    const environment = { TRUNKLINE_RUNTIME_KEY: "one", TRUNKLINE_RUNTIME_KEY_FILE: await file("two", "two") };
    expect(() => agentConfig(environment)).toThrow(
      "TRUNKLINE_RUNTIME_KEY is set more than once: keep one of TRUNKLINE_RUNTIME_KEY, TRUNKLINE_RUNTIME_KEY_FILE",
    );
  });
});

test("the image's default command prints where its API key is, and not the key", async () => {
  const dockerfile = await readFile(join(import.meta.dirname, "../../infra/Dockerfile"), "utf8");
  const args: unknown = JSON.parse(/^CMD (\[.*\])$/m.exec(dockerfile)?.[1] ?? "");
  if (!Array.isArray(args)) throw new Error("the image has no default command");
  const settings = { ...anywhere, ...demonstration };
  await using up = await TrunklineProcess.start({ args: args.map(String), settings });
  const [said] = await up.printed(/[^]*Ctrl-C stops it\.\n/);
  const key = (await readFile(join(up.stateDir, "key"), "utf8")).trim();
  expect(key).toMatch(/^trunkline_/);
  expect(said + (await up.stderr())).not.toContain(key);
  expect(said).toContain(`API key   in the file ${join(up.stateDir, "key")}\n`);
  expect(said).toContain(`Bearer $(cat '${join(up.stateDir, "key")}')`);
});
