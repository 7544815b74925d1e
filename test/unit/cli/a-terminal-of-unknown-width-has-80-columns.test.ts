import { once } from "node:events";
import { createServer } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { mintKeyToken } from "#shared/keys/key-token.ts";
import { trunkline } from "../../../services/cli/trunkline.ts";

const why = "the broker denies something to this machine, ".repeat(5);
const load = { slots: 4, running: 1, queued: 0, queue_max: 64, strays: null, models: 3, open_jobs: 1 };
const attic = { machine: "attic", epoch: "1767225600000-0a1b2c3d", status: "present", state: "ready", ...load };
const seen = { runtime: "ollama", heard_ms_ago: 400, takes_work: true, why };
const fleet = { object: "list", data: [{ ...attic, ...seen }], problem: null };

/** The lines of `trunkline status` on this output, asked of an operations port that has one machine. */
async function statusLines(output: { readonly isTTY: boolean; readonly columns?: number }): Promise<string[]> {
  const server = createServer((_, response) => response.end(JSON.stringify(fleet))).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  let written = "";
  const stdout = { ...output, write: (text: string) => (written += text) };
  const environment = {
    TRUNKLINE_OPERATIONS_URL: `http://127.0.0.1:${address.port}`,
    TRUNKLINE_ADMIN_KEY: mintKeyToken("admin").reveal(),
    NO_COLOR: "1",
  };
  expect(await trunkline({ arguments: ["status"], environment, stdout, stderr: stdout })).toBe(0);
  return written.trimEnd().split("\n");
}

test.each([
  ["a terminal that tells no width", { isTTY: true }, 80],
  ["a terminal that tells a width of 0", { isTTY: true, columns: 0 }, 80],
  ["a terminal of 100 columns", { isTTY: true, columns: 100 }, 100],
])("on %s no line of `trunkline status` is longer than its columns", async (_, output, columns) => {
  const longest = Math.max(...(await statusLines(output)).map(({ length }) => length));
  expect(longest).toBeLessThanOrEqual(columns);
  expect(longest).toBeGreaterThan(columns - 12);
});

test("in a file no line of `trunkline status` is cut", async () => {
  expect((await statusLines({ isTTY: false }))[1]).toContain(why.trimEnd());
});
