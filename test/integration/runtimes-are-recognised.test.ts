import { mkdir, utimes, writeFile } from "node:fs/promises";
import { request as ask } from "node:http";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { systemClock as clock } from "#shared/process/clock.ts";
import { runtimeSources } from "../../services/agent/models/detect.ts";
import { recogniseOpenAiServer } from "../../services/agent/runtimes/openai/recognise-openai-server.ts";
import type { Runtime } from "../../services/agent/runtimes/runtime.ts";
import { chatOn, eventsOf, textOf, firstSeenSeconds, offeredBy } from "../harness/ask-runtime.ts";
import { FakeLlamaRouter } from "../harness/fake-llama-router.ts";
import { FakeLlamaServer } from "../harness/fake-llama-server.ts";
import { FakeLmStudio } from "../harness/fake-lm-studio.ts";
import { FakeMlxLm } from "../harness/fake-mlx-lm.ts";
import { FakeOllama } from "../harness/fake-ollama.ts";
import { FakeOtherServer } from "../harness/fake-other-server.ts";
import { FakeVllm } from "../harness/fake-vllm.ts";
import { serverOfTest } from "../harness/server-of-test.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";

const { signal } = new AbortController();

type AnyFake = FakeOllama | FakeVllm | FakeLlamaServer | FakeLlamaRouter | FakeLmStudio | FakeMlxLm | FakeOtherServer;

interface Server {
  readonly is: string;
  readonly start: () => Promise<AnyFake>;
}

/** Every kind of server with the model `m`. */
const servers: Readonly<Record<string, Server>> = {
  Ollama: { is: "ollama", start: () => FakeOllama.start({ models: [{ name: "m:latest" }] }) },
  vLLM: { is: "vllm", start: () => FakeVllm.start({ models: [{ id: "m" }] }) },
  "llama-server": { is: "llama-server", start: () => FakeLlamaServer.start({ model: { name: "m" } }) },
  "llama-server as a router": { is: "llama-server", start: () => FakeLlamaRouter.start({ models: [{ name: "m" }] }) },
  "LM Studio": { is: "lm-studio", start: () => FakeLmStudio.start({ models: [{ key: "m" }] }) },
  "LM Studio of before 0.4": {
    is: "lm-studio",
    start: () => FakeLmStudio.start({ models: [{ key: "m" }], before04: true }),
  },
  "mlx-lm": { is: "mlx-lm", start: () => FakeMlxLm.start({ models: ["m"] }) },
  "a server without a name": { is: "openai", start: () => FakeOtherServer.start({ models: ["m"] }) },
};
const names = Object.keys(servers);

async function started(name: string): Promise<{ is: string; fake: AnyFake }> {
  const server = servers[name];
  if (server === undefined) throw new Error(`there is no fake of ${name}`);
  const fake = await server.start();
  onTestFinished(() => fake.stop());
  return { is: server.is, fake };
}

/** Looks at a location that the operator named and said no more of. */
async function foundAt(url: string, apiKey?: string): Promise<Runtime | "nothing" | "something-else"> {
  const [source] = runtimeSources({ kind: "auto", urls: [url], apiKey, clock });
  const sight = (await source?.look(signal)) ?? "nothing";
  if (typeof sight !== "string") onTestFinished(() => sight.close?.());
  return sight;
}

function runtimeIn(sight: Runtime | string | undefined): Runtime {
  if (typeof sight === "object") return sight;
  throw new Error(`it was not recognised: ${sight ?? "nothing"}`);
}

async function answered(runtime: Runtime, model: string): Promise<string> {
  return textOf(await eventsOf(chatOn(runtime, { model })));
}

describe("at the address that the operator gave, whatever runtime is there is found and works", () => {
  test.each(names)(
    "%s is found at the address that the operator gave, in each of its forms, and works",
    async (name) => {
      const { is, fake } = await started(name);
      for (const url of [fake.url, `${fake.url}/`, `${fake.url}/v1`, `${fake.url}/v1/`]) {
        const runtime = runtimeIn(await foundAt(url));
        expect(runtime).toMatchObject({ name: is, origin: fake.url });
        const offered = await offeredBy(runtime);
        expect(offered.map(({ id, runtime: told }) => [id, told])).toEqual([["m", is]]);
        // A model that tells no age is as old in every list as it was in the first.
        if (is !== "ollama") expect(offered.map(({ created }) => created)).toEqual([firstSeenSeconds]);
        expect(await answered(runtime, "m")).toMatch(/^Hello from /);
      }
    },
  );

  test("several runtimes are looked for in their order, each where it was said to be", async () => {
    const all = await Promise.all(names.map(started));
    const sources = runtimeSources({ kind: "auto", urls: all.map(({ fake }) => `${fake.url}/v1`), clock });
    expect(sources.map(({ location }) => location)).toEqual(all.map(({ fake }) => fake.url));
    const found = (await Promise.all(sources.map((source) => source.look(signal)))).map(runtimeIn);
    for (const runtime of found) onTestFinished(() => runtime.close?.());
    expect(found.map(({ name }) => name)).toEqual(all.map(({ is }) => is));
  });
});

/** A door in front of a server that opens to one key only. */
const doorTo = (url: string, apiKey: string): Promise<string> =>
  serverOfTest((incoming, response) => {
    if (incoming.headers.authorization !== `Bearer ${apiKey}`) {
      response.writeHead(401, { "content-type": "application/json" }).end('{"error":"no key"}');
      return;
    }
    const { method, headers } = incoming;
    const passed = ask(new URL(incoming.url ?? "/", url), { method: method ?? "GET", headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    incoming.pipe(passed);
  });

describe("a runtime that wants an API key is found with it, works with it, and is nothing without", () => {
  test.each(names)("%s that wants an API key is found with it, works with it, and is nothing without", async (name) => {
    const { is, fake } = await started(name);
    const url = await doorTo(fake.url, "secret");
    expect(await foundAt(url)).toBe("nothing");
    expect(await foundAt(url, "another")).toBe("nothing");
    expect(fake.requests).toEqual([]);
    const runtime = runtimeIn(await foundAt(url, "secret"));
    expect(runtime.name).toBe(is);
    expect((await offeredBy(runtime)).map(({ id }) => id)).toEqual(["m"]);
    expect(await answered(runtime, "m")).toMatch(/^Hello from /);
  });
});

type ByPath = readonly [start: (path: string) => Promise<AnyFake>, path: string, id: string];

const vllmOf = (path: string) => FakeVllm.start({ models: [{ id: path }] });
const llamaOf = (path: string) => FakeLlamaServer.start({ model: { name: path, modelPath: path } });
/** Who starts a server with a folder or a file and no other name gets models with a path for a name. */
const byPath: Readonly<Record<string, ByPath>> = {
  vLLM: [vllmOf, "/srv/models/Qwen3-8B", "Qwen3-8B"],
  "llama-server": [llamaOf, "/srv/models/qwen3-8b-00001-of-00002.gguf", "qwen3-8b"],
  "llama-server of Windows": [llamaOf, String.raw`C:\Users\ada\qwen3-8b.gguf`, "qwen3-8b"],
  "mlx-lm": [(path) => FakeMlxLm.start({ models: [path] }), "/Users/ada/qwen3-4bit", "qwen3-4bit"],
  "a server without a name": [
    (path) => FakeOtherServer.start({ models: [path] }),
    "/Users/ada/qwen3-4bit/",
    "qwen3-4bit",
  ],
};

describe("a model whose name is a path is shown by the last part of it, and works", () => {
  test.each(Object.keys(byPath))(
    "%s shows a model whose name is a path by the last part of it, and serves it",
    async (name) => {
      const [start, path, id] = byPath[name] as ByPath;
      const fake = await start(path);
      onTestFinished(() => fake.stop());
      const runtime = runtimeIn(await foundAt(fake.url));
      const offered = await offeredBy(runtime);
      expect(offered.map((model) => model.id)).toEqual([id]);
      // Neither as its owner: a path tells who uses the machine.
      expect(JSON.stringify(offered)).not.toMatch(/ada|srv/);
      expect(await answered(runtime, id)).toMatch(/^Hello from /);
      expect(fake.requests.at(-1)?.body).toMatchObject({ model: path });
    },
  );
});

/** A model's files as Hugging Face keeps them. */
async function hubWith(name: string): Promise<{ hubFolder: string; sizeBytes: number }> {
  const hubFolder = folderOfTest();
  const repository = join(hubFolder, `models--${name.replaceAll("/", "--")}`);
  const snapshot = join(repository, "snapshots", "abc123");
  await mkdir(snapshot, { recursive: true });
  await mkdir(join(repository, "refs"));
  const sizes = [2_000_000, 1_000_000];
  await Promise.all([
    writeFile(join(repository, "refs", "main"), "abc123\n"),
    writeFile(join(snapshot, "config.json"), '{"max_position_embeddings":40960}'),
    writeFile(join(snapshot, "chat_template.jinja"), "{% if tools %}{{ tools }}{% endif %}<think>"),
    ...sizes.map((size, at) => writeFile(join(snapshot, `model-${at}.safetensors`), Buffer.alloc(size))),
  ]);
  return { hubFolder, sizeBytes: sizes.reduce((sum, size) => sum + size) };
}

async function recognised(fake: AnyFake, options: { hubFolder?: string; platform?: string } = {}): Promise<Runtime> {
  const runtime = runtimeIn(await recogniseOpenAiServer({ url: fake.url, clock }, { ...options, signal }));
  onTestFinished(async () => {
    await runtime.close?.();
    await fake.stop();
  });
  return runtime;
}

describe("information that a runtime lacks is read from the model's files, where they are on this host", () => {
  const name = "mlx-community/Qwen3-8B-4bit";

  test("the window, size, tools and thoughts of a model of mlx-lm are read from its files", async () => {
    const { hubFolder, sizeBytes } = await hubWith(name);
    const fake = await FakeMlxLm.start({ models: [name, "mlx-community/elsewhere"] });
    const runtime = await recognised(fake, { hubFolder, platform: "darwin" });
    const [read, unread] = await offeredBy(runtime);
    expect(read).toMatchObject({ id: name, context_window: 40_960, size_mb: sizeBytes / 1_000_000, apple_mlx: true });
    expect(read?.capabilities).toMatchObject({ completion: true, tools: true, thinking: true, vision: false });
    // Nothing is promised of which nothing is known.
    expect(unread).toMatchObject({ id: "mlx-community/elsewhere", context_window: 4_096, size_mb: 0 });
    expect(unread?.capabilities).toMatchObject({ completion: true, tools: false, thinking: false });
  });

  test("the size of a model of vLLM is read from its files: of what it serves under another name; the window is its own", async () => {
    const { hubFolder, sizeBytes } = await hubWith(name);
    const fake = await FakeVllm.start({ models: [{ id: "ours", root: name }], maxModelLen: 8_192 });
    const offered = await offeredBy(await recognised(fake, { hubFolder }));
    expect(offered).toMatchObject([
      { id: "ours", context_window: 8_192, size_mb: sizeBytes / 1_000_000, loaded: true },
    ]);
    expect(offered).not.toMatchObject([{ apple_mlx: true }]);
  });

  test("the age of a model of llama-server is read from its files: since when the model exists, which its list gives anew with every call", async () => {
    const modelPath = join(folderOfTest(), "m.gguf");
    await writeFile(modelPath, "GGUF");
    await utimes(modelPath, 1_750_000_000, 1_750_000_000);
    const runtime = await recognised(await FakeLlamaServer.start({ model: { name: "m", modelPath } }));
    expect(await offeredBy(runtime)).toMatchObject([{ id: "m", created: 1_750_000_000 }]);
  });
});

test("a model of Ollama is as old as Ollama says itself", async () => {
  const modifiedAt = "2026-08-01T10:00:00.123456789+02:00";
  const fake = await FakeOllama.start({ models: [{ name: "m:latest", modifiedAt }] });
  onTestFinished(() => fake.stop());
  const offered = await offeredBy(runtimeIn(await foundAt(fake.url)));
  expect(offered).toMatchObject([{ created: Date.UTC(2026, 7, 1, 8) / 1_000 }]);
});
