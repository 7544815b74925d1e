import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Endpoint } from "../harness/endpoint.ts";
import { findBinary } from "../harness/find-binary.ts";
import { freePort } from "../harness/free-port.ts";
import { OwnedChild } from "../harness/owned-child.ts";
import { writeTinyGguf } from "../harness/tiny-gguf.ts";
import { issueKey, type Settings } from "../harness/trunkline-command.ts";
import { TrunklineProcess } from "../harness/trunkline-process.ts";
import { until } from "../harness/until.ts";
import { engine, noEngine } from "./tiny-runtime.ts";

const names = ["one", "two", "three"];
/** A model of these tests takes 3.6 MB. */
const memoryMb = 5;

/** Starts what runs the models of a folder, and returns the arguments and settings by which Trunkline finds it. */
type Start = (folder: string, files: readonly string[]) => Promise<{ args: readonly string[]; settings: Settings }>;

const inProcess: Start = async (_, files) => ({
  args: files.flatMap((file) => ["--gguf", file]),
  settings: "dir" in engine && engine.dir !== undefined ? { TRUNKLINE_ENGINE_DIR: engine.dir } : {},
});

const llamaServer = await findBinary("llama-server");
if (llamaServer === undefined) {
  console.log("Skipping the router of llama-server: llama-server of llama.cpp is not on the PATH.");
}

const router: Start = async (folder) => {
  const port = await freePort();
  const bounds = ["--ctx-size", "512", "--parallel", "2", "--models-max", "3"];
  const args = ["--models-dir", folder, "--port", String(port), ...bounds];
  const child = await OwnedChild.start({ binary: llamaServer ?? "", args, environment: { ...process.env } });
  onTestFinished(() => child[Symbol.asyncDispose]());
  const url = `http://127.0.0.1:${port}`;
  const listens = (): Promise<boolean> =>
    fetch(`${url}/models`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until(listens, { what: "llama-server to listen", timeoutMs: 20_000 });
  return { args: [], settings: { TRUNKLINE_RUNTIME: "llama-server", TRUNKLINE_RUNTIME_URL: url } };
};

test.each([
  { runtime: "the engine in this process", start: inProcess, isMissing: noEngine },
  { runtime: "the router of llama-server", start: router, isMissing: llamaServer === undefined },
])(
  "three models in a memory that holds one answer 200 requests of four clients, and are loaded far less often ($runtime)",
  { timeout: 120_000 },
  async ({ start, isMissing }) => {
    if (isMissing) return;
    const folder = await mkdtemp(join(tmpdir(), "trunkline-gguf-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const files = await Promise.all(
      names.map((name) => writeTinyGguf(folder, { name, scripts: { "<|assistant|>": ["I", " am ", `${name}.`] } })),
    );
    const { args, settings } = await start(folder, files);
    const up = await TrunklineProcess.start({
      args: ["up", "--json", ...args],
      settings: {
        TRUNKLINE_PORT: "0",
        TRUNKLINE_OPERATIONS_PORT: "0",
        TRUNKLINE_LOG_LEVEL: "info",
        TRUNKLINE_MANAGE: "place",
        TRUNKLINE_MODEL_MEMORY_MB: String(memoryMb),
        ...settings,
      },
    });
    onTestFinished(() => up[Symbol.asyncDispose]());
    const [line] = await up.printed(/^.*\n/);
    const ready: { base_url: string } = JSON.parse(line);
    // These loads take milliseconds, and a key may cause only so many a minute.
    const { key } = await issueKey({ TRUNKLINE_STATE_DIR: up.stateDir }, "--loads", "1000");
    const endpoint = new Endpoint({ baseUrl: ready.base_url, key });

    const answers: string[] = [];
    const expected: string[] = [];
    const client = async (place: number): Promise<void> => {
      for (let turn = 0; turn < 50; turn += 1) {
        const model = names[(place + Math.floor(turn / 5)) % names.length] ?? "";
        expected.push(`I am ${model}.`);
        answers.push(await endpoint.answer({ model, says: "Who are you?", temperature: 0 }));
      }
    };
    await Promise.all([0, 1, 2, 3].map(client));
    expect(answers.toSorted()).toEqual(expected.toSorted());
    const loads = (await up.logLines()).filter(({ msg }) => msg === "a model was loaded");
    expect(loads.length).toBeGreaterThanOrEqual(3);
    expect(loads.length).toBeLessThan(100);
  },
);
