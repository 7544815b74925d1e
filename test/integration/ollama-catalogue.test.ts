import { afterEach, beforeEach, expect, test } from "vitest";
import { catalogue } from "#shared/protocol/model.ts";
import { ollamaRuntime, type OllamaRuntime } from "../../services/agent/runtimes/ollama/ollama.ts";
import { FakeOllama } from "../harness/fake-ollama.ts";
import { offeredBy } from "../harness/ask-runtime.ts";
import { until } from "../harness/until.ts";

const { signal } = new AbortController();
let ollama: FakeOllama;
let runtime: OllamaRuntime;

beforeEach(async () => {
  ollama = await FakeOllama.start();
  runtime = ollamaRuntime({ url: ollama.url, host: { platform: "darwin", arch: "arm64" } });
});
afterEach(async () => {
  await runtime.close();
  await ollama.stop();
});

async function ids(): Promise<string[]> {
  return (await offeredBy(runtime)).map(({ id }) => id);
}

test("the catalogue of an Ollama lists what this machine can serve, and nothing from the cloud or of no use", async () => {
  ollama.models = [
    { name: "llama3.2:latest", capabilities: ["completion", "tools"], loadedTokens: 32_768 },
    {
      name: "nomic-embed-text:latest",
      capabilities: ["embedding"],
      architecture: "nomic-bert",
      trainedTokens: 2_048,
    },
    { name: "qwen3.5:9b-mlx", capabilities: ["completion"], format: "safetensors", architecture: "qwen3.5" },
    { name: "gpt-oss:120b-cloud", capabilities: ["completion"], remoteHost: "https://ollama.com:443" },
    { name: "painter:latest", capabilities: ["image"] },
  ];
  expect(catalogue.parse(await offeredBy(runtime))).toMatchObject([
    { id: "llama3.2", context_window: 32_768, runtime_profile: "auto", capabilities: { tools: true }, loaded: true },
    { id: "nomic-embed-text", context_window: 2_048, capabilities: { completion: false, embedding: true } },
    { id: "qwen3.5:9b-mlx", context_window: 131_072, runtime_profile: "apple-mlx", apple_mlx: true },
  ]);
});

test("the catalogue of an Ollama asks what a model can do once for each of its versions", async () => {
  await ids();
  await ids();
  expect(ollama.requestsTo("/api/show")).toHaveLength(1);
  ollama.models = [{ name: "llama3.2:latest", digest: "another", capabilities: ["completion", "tools"] }];
  expect(await offeredBy(runtime)).toMatchObject([{ capabilities: { tools: true } }]);
  expect(ollama.requestsTo("/api/show")).toHaveLength(2);
});

test("the catalogue of an Ollama follows models that come and go", async () => {
  ollama.models = [{ name: "one:1b" }, { name: "two:2b" }];
  expect(await ids()).toEqual(["one:1b", "two:2b"]);
  ollama.models = [];
  expect(await ids()).toEqual([]);
});

test("the catalogue of an Ollama is learnt anew of an Ollama that was away: it may be another version, set up in another way", async () => {
  const port = Number(new URL(ollama.url).port);
  const model = { name: "llama3.2:latest", digest: "same" };
  ollama.models = [{ ...model, loadedTokens: 32_768 }];
  expect(await offeredBy(runtime)).toMatchObject([{ context_window: 32_768, capabilities: { tools: false } }]);
  await ollama.stop();
  await expect(runtime.catalogue(signal)).rejects.toMatchObject({ code: "runtime_offline" });
  ollama = await FakeOllama.start({ port, models: [{ ...model, capabilities: ["completion", "tools"] }] });
  expect(await offeredBy(runtime)).toMatchObject([{ context_window: 4_096, capabilities: { tools: true } }]);
});

test("the catalogue of an Ollama is not hidden by one damaged model", async () => {
  ollama.models = [{ name: "bad:1b", damaged: true }, { name: "good:1b" }];
  expect(await ids()).toEqual(["good:1b"]);
});

test("the catalogue of an Ollama keeps what it learnt when there was no time for all, so that the next reading gets further", async () => {
  ollama.models = Array.from({ length: 20 }, (_, at) => ({ name: `m${at}:1b` }));
  const abort = new AbortController();
  const cut = runtime.catalogue(abort.signal);
  await until(() => ollama.requestsTo("/api/show").length > 8, { what: "a second round", intervalMs: 1 });
  abort.abort(new Error("out of time"));
  await cut.catch(() => {});
  const asked = ollama.requestsTo("/api/show").length;
  expect(await ids()).toHaveLength(20);
  expect(ollama.requestsTo("/api/show").length - asked).toBeLessThan(20);
});

test("the catalogue of an Ollama is refused when Ollama does not answer, and ends at once with its signal", async () => {
  const abort = new AbortController();
  const reason = new Error("out of time");
  ollama.silent = true;
  const asked = runtime.catalogue(abort.signal);
  await until(() => ollama.requests.length > 0, { what: "the question" });
  abort.abort(reason);
  await expect(asked).rejects.toBe(reason);
  await ollama.stop();
  await expect(runtime.catalogue(signal)).rejects.toMatchObject({ message: "The runtime does not answer." });
  ollama = await FakeOllama.start();
});
