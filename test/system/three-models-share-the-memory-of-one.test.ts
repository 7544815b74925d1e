import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { Endpoint } from "../harness/endpoint.ts";
import { findBinary } from "../harness/find-binary.ts";
import { freePort } from "../harness/free-port.ts";
import { OwnedChild } from "../harness/owned-child.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { writeTinyGguf } from "../harness/tiny-gguf.ts";
import { issueKey, type Settings } from "../harness/trunkline-command.ts";
import { TrunklineProcess } from "../harness/trunkline-process.ts";
import { until } from "../harness/until.ts";
import { engine, noEngine } from "../engine/tiny-runtime.ts";

const names = ["one", "two", "three"];
/** A model of these tests takes 3.6 MB. */
const memoryMb = 5;

/** Starts what runs the models of a folder, and returns the arguments and settings by which Trunkline finds it. */
type Start = (folder: string, files: readonly string[]) => Promise<{ args: readonly string[]; settings: Settings }>;

const inProcess: Start = async (_, files) => ({
  args: files.flatMap((file) => ["--gguf", file]),
  settings: "dir" in engine && engine.dir !== undefined ? { TRUNKLINE_ENGINE_DIR: engine.dir } : {},
});

async function binaryOf(name: string): Promise<string | undefined> {
  const found = await findBinary(name);
  if (found === undefined) console.log(`Skipping ${name}, as it is not on the PATH.`);
  return found;
}
const [llamaServer, ollama] = [await binaryOf("llama-server"), await binaryOf("ollama")];

/** Starts a server of models and waits until it listens. */
async function serve(
  binary: string | undefined,
  args: readonly string[],
  { url, env = {} }: { url: string; env?: Settings },
): Promise<void> {
  const environment = { ...process.env, ...env };
  const child = await OwnedChild.start({ binary: binary ?? "", args, environment });
  onTestFinished(() => child[Symbol.asyncDispose]());
  const listens = (): Promise<boolean> =>
    fetch(url).then(
      ({ ok }) => ok,
      () => false,
    );
  await until(listens, { what: `${binary} to listen`, timeoutMs: 20_000 });
}

const byRouter: Start = async (folder) => {
  const port = String(await freePort());
  const url = `http://127.0.0.1:${port}`;
  const bounds = ["--ctx-size", "512", "--parallel", "2", "--models-max", "3"];
  await serve(llamaServer, ["--models-dir", folder, "--port", port, ...bounds], { url: `${url}/models` });
  return { args: [], settings: { TRUNKLINE_RUNTIME: "llama-server", TRUNKLINE_RUNTIME_URL: url } };
};

const byOllama: Start = async (folder, files) => {
  const host = `127.0.0.1:${await freePort()}`;
  const env = { OLLAMA_HOST: host, OLLAMA_MODELS: join(folder, "ollama"), OLLAMA_MAX_LOADED_MODELS: "1" };
  await serve(ollama, ["serve"], { url: `http://${host}`, env });
  for (const [place, file] of files.entries()) {
    const modelfile = join(folder, `${names[place]}.modelfile`);
    const template = "{{ range .Messages }}<|{{ .Role }}|>{{ .Content }}<|end|>{{ end }}<|assistant|>";
    await writeFile(modelfile, `FROM ${file}\nTEMPLATE """${template}"""\nPARAMETER num_ctx 512\n`);
    await promisify(execFile)(ollama ?? "", ["create", names[place] ?? "", "-f", modelfile], {
      env: { ...process.env, ...env },
    });
  }
  return { args: [], settings: { TRUNKLINE_RUNTIME: "ollama", TRUNKLINE_RUNTIME_URL: `http://${host}` } };
};

test.for([
  // A load takes 15 ms here and 300 to 1,000 in a server: a model that loads at once has short turns.
  { runtime: "the engine in this process", start: inProcess, isMissing: noEngine, loadsMax: 199 },
  { runtime: "the router of llama-server", start: byRouter, isMissing: llamaServer === undefined, loadsMax: 40 },
  { runtime: "Ollama that holds one model", start: byOllama, isMissing: ollama === undefined, loadsMax: 40 },
])(
  "three models in a memory that holds one answer 200 requests of four clients, and are loaded less often than they are asked ($runtime)",
  { timeout: 120_000 },
  async ({ start, isMissing, loadsMax }, { skip }) => {
    skip(isMissing);
    const folder = folderOfTest();
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
    expect(loads.length).toBeLessThanOrEqual(loadsMax);
  },
);
