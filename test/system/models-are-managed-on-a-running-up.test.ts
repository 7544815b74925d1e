import { statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PullingOllama } from "../harness/pulling-ollama.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import type { Settings } from "../harness/trunkline-command.ts";
import { trunklineHere } from "../harness/trunkline-here.ts";
import { TrunklineProcess } from "../harness/trunkline-process.ts";
import { until } from "../harness/until.ts";

/** What is pulled or removed shows in the catalogue within this. */
const shownWithinMs = 3_000;
const gb = 1_000_000_000;

let ollama: PullingOllama;
let up: UpProcess;
let settings: Settings;
beforeAll(async () => {
  ollama = await PullingOllama.start([{ name: "llama3.2:latest" }]);
  up = await startUp({
    TRUNKLINE_RUNTIME: "ollama",
    TRUNKLINE_RUNTIME_URL: ollama.url,
    TRUNKLINE_MACHINE: "attic",
    TRUNKLINE_MANAGE: "pull,remove",
  });
  settings = { TRUNKLINE_STATE_DIR: up.stateDir, TRUNKLINE_OPERATIONS_URL: up.operationsUrl };
});
afterAll(async () => {
  await up[Symbol.asyncDispose]();
  await ollama[Symbol.asyncDispose]();
});

const models = (...args: string[]) => trunklineHere(["models", ...args], settings);

async function pulling(name: string): Promise<{ command: TrunklineProcess; pull: PullingOllama["pulls"][number] }> {
  const command = await TrunklineProcess.start({ args: ["models", "pull", name], settings });
  const pull = await until(() => ollama.pulls.find(({ model }) => model === name), {
    what: "the runtime to be asked for it",
    timeoutMs: 10_000,
  });
  return { command, pull };
}

async function untilServed(name: string, served: boolean): Promise<void> {
  const look = async (): Promise<boolean> => (await up.endpoint.models()).ids.includes(name) === served;
  await until(look, { what: `${name} ${served ? "" : "not "}to be served`, timeoutMs: shownWithinMs });
}

test("a model is pulled with the key that up keeps, is served, and is removed again", async () => {
  expect(statSync(join(up.stateDir, "admin-key")).mode & 0o777).toBe(0o600);
  const started = await pulling("qwen3:8b");
  await using command = started.command;
  const { pull } = started;
  pull.say({ status: "pulling manifest" });
  const layer = { status: "pulling a3de86cd1c13", digest: "sha256:a3de86cd1c13", total: 5 * gb };
  pull.say(layer);
  for (const completed of [1 * gb, 2 * gb, 5 * gb]) pull.say({ ...layer, completed });
  ollama.fake.models = [...ollama.fake.models, { name: "qwen3:8b", sizeBytes: 5 * gb }];
  for (const status of ["verifying sha256 digest", "writing manifest", "success"]) pull.say({ status });
  pull.end();
  expect(await command.exit()).toBe(0);
  expect(await command.stdout()).toBe("Pulled qwen3:8b on attic.\n");
  expect((await command.stderr()).split("\n")).toEqual(
    [
      "pulling manifest",
      "pulling a3de86cd1c13, 0 % of 5.0 GB",
      "pulling a3de86cd1c13, 20 % of 5.0 GB",
      "pulling a3de86cd1c13, 40 % of 5.0 GB",
      "pulling a3de86cd1c13, 100 % of 5.0 GB",
      "verifying sha256 digest",
      "writing manifest",
      "success",
    ]
      .map((line) => `qwen3:8b: ${line}`)
      .concat(""),
  );

  await untilServed("qwen3:8b", true);
  const { out } = await models();
  expect(out).toMatch(/^llama3\.2 +attic +ollama +chat +[\d,]+ +2\.0 GB +no +no +(?:-|no|not yet)$/m);
  expect(out).toMatch(/^qwen3:8b +attic +ollama +chat +[\d,]+ +5\.0 GB +no +no +(?:-|no|not yet)$/m);

  expect(await models("rm", "qwen3:8b")).toMatchObject({ exitCode: 0, out: "Removed qwen3:8b on attic.\n" });
  await untilServed("qwen3:8b", false);
  expect((await models("rm", "qwen3:8b")).exitCode).toBe(1);
});

test("Ctrl-C leaves a pull to its machine, where it is seen, and stopped by name", async () => {
  const { command, pull } = await pulling("gemma3");
  await using _command = command;
  pull.say({ status: "pulling manifest" });
  await until(async () => (await command.stderr()).includes("pulling manifest"), { what: "the pull to be shown" });
  expect(await command.terminate("SIGINT")).toBe(130);
  expect(await command.stdout()).toBe("");
  expect(await command.stderr()).toMatch(
    /The pull of gemma3 goes on at attic[^]*models pulls.*models pulls stop gemma3/,
  );
  pull.say({ status: "pulling a3de86cd1c13", digest: "sha256:a3de86cd1c13", total: 5 * gb, completed: 2 * gb });
  await until(async () => /gemma3 +attic +pulling +40 % of 5\.0 GB/.test((await models("pulls")).out), {
    what: "the pull to be listed with its progress",
  });
  expect(pull.closedEarly).toBe(false);
  expect(await models("pulls", "stop", "gemma3")).toMatchObject({
    exitCode: 0,
    out: "Stopped the pull of gemma3 on attic.\n",
  });
  await until(() => pull.closedEarly, { what: "the runtime's request to be closed" });
  const isTold = async (): Promise<boolean> => /gemma3 +attic +failed/.test((await models("pulls")).out);
  await until(isTold, { what: "the end of the pull to be told" });
  expect(await models("pulls", "stop", "gemma3")).toMatchObject({ exitCode: 1, out: "" });
});

test("a change that the machine's owner does not allow is refused before the runtime is asked, and the refusal says what would", async () => {
  const refused = { exitCode: 1, out: "", err: expect.stringContaining("TRUNKLINE_MANAGE") };
  expect(await models("load", "llama3.2", "--machine", "attic")).toEqual(refused);
  expect(ollama.fake.requestsTo("/api/generate")).toEqual([]);
});
