import { once } from "node:events";
import { createServer } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { mintKeyToken } from "#shared/keys/key-token.ts";
import { trunkline } from "../../../services/cli/trunkline.ts";

const load = { slots: 4, running: 1, queued: 0, queue_max: 64, strays: null, models: 3, open_jobs: 1 };
const attic = { machine: "attic", epoch: "1767225600000-0a1b2c3d", status: "present", state: "ready", ...load };
const data = [{ ...attic, runtime: "ollama", heard_ms_ago: 400, takes_work: true, why: null }];
const remark = "NATS does not let its credential publish to tl1.placed.*, so gateways know less";

/** Runs `trunkline status` against an operations port that answers with this, on a file or on a terminal. */
async function status(fleet: object, more: readonly string[] = [], output: { isTTY?: boolean; columns?: number } = {}) {
  const server = createServer((_, response) => response.end(JSON.stringify({ object: "list", data, ...fleet })));
  onTestFinished(() => void server.close());
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  const [told, failed]: [string[], string[]] = [[], []];
  const environment = {
    TRUNKLINE_OPERATIONS_URL: `http://127.0.0.1:${address.port}`,
    TRUNKLINE_ADMIN_KEY: mintKeyToken("admin").reveal(),
    NO_COLOR: "1",
  };
  const stdout = { ...output, write: (text: string) => told.push(text) };
  const stderr = { write: (text: string) => failed.push(text) };
  const exitCode = await trunkline({ arguments: ["status", ...more], environment, stdout, stderr });
  return { exitCode, stdout: told.join(""), stderr: failed.join("") };
}

test("`trunkline status` names a missing grant that a gateway can do without beside its machines", async () => {
  const { exitCode, stdout, stderr } = await status({ problem: null, remark });
  expect(stdout).toMatch(/^attic +ready/m);
  expect([exitCode, stderr]).toEqual([0, `This gateway serves, but ${remark}.\n`]);
  expect((await status({ problem: "it is", remark })).stderr).toBe(
    `This gateway has a problem: it is.\nThis gateway serves, but ${remark}.\n`,
  );
});

test("`trunkline status` says nothing more of a gateway that lacks nothing, nor of one of an older version", async () => {
  expect(await status({ problem: null, remark: null })).toMatchObject({ exitCode: 0, stderr: "" });
  expect(await status({ problem: null })).toMatchObject({ exitCode: 0, stderr: "" });
});

test("`trunkline status --json` has the missing grant as a field", async () => {
  const { stdout, stderr } = await status({ problem: null, remark }, ["--json"]);
  expect([JSON.parse(stdout), stderr]).toEqual([expect.objectContaining({ problem: null, remark }), ""]);
  expect(JSON.parse((await status({ problem: null }, ["--json"])).stdout)).toMatchObject({ remark: null });
});

const why = "the broker denies something to this machine, ".repeat(5);
const wordy = { data: data.map((machine) => ({ ...machine, why })), problem: null };

test.each([
  ["a terminal that tells no width", { isTTY: true }, 80],
  ["a terminal that tells a width of 0", { isTTY: true, columns: 0 }, 80],
  ["a terminal of 100 columns", { isTTY: true, columns: 100 }, 100],
])("on %s no line of `trunkline status` is longer than its columns", async (_, output, columns) => {
  const { stdout } = await status(wordy, [], output);
  const longest = Math.max(...stdout.split("\n").map(({ length }) => length));
  expect(longest).toBeLessThanOrEqual(columns);
  expect(longest).toBeGreaterThan(columns - 12);
});

test("in a file no line of `trunkline status` is cut", async () => {
  expect((await status(wordy)).stdout.split("\n")[1]).toContain(why.trimEnd());
});
