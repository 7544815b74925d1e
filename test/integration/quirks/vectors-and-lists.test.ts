import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FakeLlamaServer } from "../../harness/fake-llama-server.ts";
import { FakeLmStudio } from "../../harness/fake-lm-studio.ts";
import { FakeMlxLm } from "../../harness/fake-mlx-lm.ts";
import { FakeOllama } from "../../harness/fake-ollama.ts";
import { FakeOtherServer } from "../../harness/fake-other-server.ts";
import { FakeVllm } from "../../harness/fake-vllm.ts";
import { startGatewayInProcess, type GatewayInProcess } from "../../harness/gateway-in-process.ts";
import type { Endpoint } from "../../harness/endpoint.ts";
import { gatewayBefore } from "../../harness/server-of-test.ts";
import { until } from "../../harness/until.ts";

interface Embedder {
  readonly runtime: string;
  readonly path: string;
  start(): Promise<FakeOllama | FakeVllm | FakeLlamaServer | FakeLmStudio>;
  /** What the runtime must be asked for "a b" and "c". */
  readonly asked: object;
  /** What the client is told when it wants vectors of three numbers. */
  readonly ofThree: object;
}

const three = { status: 200, data: [{ embedding: [0, 1, 2].map(() => expect.any(Number)) }] };
const refused = { status: 400, error: { param: "dimensions" } };

const float = { model: "v", input: ["a b", "c"], encoding_format: "float" };

const embedders = {
  Ollama: {
    runtime: "ollama",
    path: "/api/embed",
    start: () => FakeOllama.start({ models: [{ name: "v:latest", capabilities: ["embedding"], trainedTokens: 8 }] }),
    asked: { model: "v:latest", input: ["a b", "c"], truncate: false },
    ofThree: three,
  },
  vLLM: {
    runtime: "vllm",
    path: "/v1/embeddings",
    start: () => FakeVllm.start({ models: [{ id: "v" }], task: "embed" }),
    asked: { ...float, cache_salt: expect.stringMatching(/^[0-9a-f]{32}$/) },
    ofThree: refused,
  },
  "llama-server": {
    runtime: "llama-server",
    path: "/v1/embeddings",
    start: () => FakeLlamaServer.start({ model: { name: "v", embeddings: true } }),
    asked: float,
    ofThree: refused,
  },
  "LM Studio": {
    runtime: "lm-studio",
    path: "/v1/embeddings",
    start: () => FakeLmStudio.start({ models: [{ key: "v", type: "embedding" }] }),
    asked: float,
    ofThree: refused,
  },
} as const satisfies Readonly<Record<string, Embedder>>;

interface VectorsTold {
  readonly data: readonly { readonly index: number; readonly embedding: unknown }[];
}

describe.each(Object.entries(embedders))("quirk 24: vectors of %s", (_, { runtime, path, start, asked, ofThree }) => {
  let fake: Awaited<ReturnType<Embedder["start"]>>;
  let gateway: GatewayInProcess;
  let endpoint: Endpoint;
  beforeAll(async () => {
    fake = await start();
    gateway = await startGatewayInProcess({ env: { TRUNKLINE_RUNTIME: runtime, TRUNKLINE_RUNTIME_URL: fake.url } });
    ({ endpoint } = await gateway.issue());
    const embeds = async (): Promise<boolean> => {
      const { capabilities } = (await (await endpoint.get("/models/v")).json()) as {
        capabilities?: { embedding: boolean };
      };
      return capabilities?.embedding === true;
    };
    await until(embeds, { what: "the model to be known to embed" });
  });
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
    await fake.stop();
  });

  test("vectors come as numbers, and as the same in base64, which the official SDK asks for and the runtime need not know", async () => {
    const [numbers, base64] = (await Promise.all(
      ["float", "base64"].map(async (format) => {
        const response = await endpoint.embed({ model: "v", input: ["a b", "c"], encoding_format: format });
        expect(response.status).toBe(200);
        return response.json();
      }),
    )) as [VectorsTold, VectorsTold];
    expect(numbers).toEqual({
      object: "list",
      data: [0, 1].map((index) => ({ object: "embedding", index, embedding: expect.any(Array) })),
      model: "v",
      usage: { prompt_tokens: expect.any(Number), total_tokens: expect.any(Number) },
    });
    const decoded = base64.data.map(({ embedding }) => {
      const bytes = Buffer.from(String(embedding), "base64");
      return Array.from({ length: bytes.length / 4 }, (_gap, at) => bytes.readFloatLE(at * 4));
    });
    expect(decoded).toEqual(numbers.data.map(({ embedding }) => (embedding as number[]).map(Math.fround)));
    // Not the one by which an agent may have found out what the model does.
    const sent = fake.requestsTo(path).filter(({ body }) => Array.isArray(body["input"]));
    expect(sent.map(({ body }) => body)).toEqual([asked, asked]);
  });

  test("vectors of another length than the model's are that long, or a 400 that names dimensions", async () => {
    const response = await endpoint.embed({ model: "v", input: "a", dimensions: 3 });
    expect({ status: response.status, ...((await response.json()) as object) }).toMatchObject(ofThree);
  });
});

test("quirk 24: Ollama would cut a text that is too long, and is told not to", async () => {
  await using fake = await embedders.Ollama.start();
  const { endpoint } = await (await gatewayBefore("ollama", fake)).issue();
  const response = await endpoint.embed({ model: "v", input: "word ".repeat(9) });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: { code: "context_length_exceeded", param: "input" } });
});

test("quirk 24: mlx-lm makes no vectors, which is a 400 and no question to it", async () => {
  await using fake = await FakeMlxLm.start({ models: ["v"] });
  const { endpoint } = await (await gatewayBefore("mlx-lm", fake)).issue();
  const response = await endpoint.embed({ model: "v", input: "a" });
  expect(response.status).toBe(400);
  expect(fake.requestsTo("/v1/embeddings")).toEqual([]);
});

test.each<[string, string, () => Promise<AsyncDisposable & { url: string; requests: readonly unknown[] }>]>([
  ["null, of a server without a name", "openai", () => FakeOtherServer.start({ models: [] })],
  ["empty, of Ollama", "ollama", () => FakeOllama.start({ models: [] })],
  ["empty, of LM Studio", "lm-studio", () => FakeLmStudio.start({ models: [] })],
  ["empty, of mlx-lm", "mlx-lm", () => FakeMlxLm.start({ models: [] })],
])("quirk 25: a list without models is an empty list, also where its own is %s", async (_, runtime, start) => {
  await using fake = await start();
  const { endpoint } = await (await gatewayBefore(runtime, fake)).issue();
  await until(() => fake.requests.length > 0, { what: "the runtime to be asked" });
  const response = await endpoint.get("/models");
  expect(await response.text()).toBe('{"object":"list","data":[]}');
});
