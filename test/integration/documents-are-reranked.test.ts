import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Endpoint, refusalOf } from "../harness/endpoint.ts";
import { FakeLlamaServer } from "../harness/fake-llama-server.ts";
import { FakeOtherServer } from "../harness/fake-other-server.ts";
import { FakeVllm } from "../harness/fake-vllm.ts";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";
import { Operator } from "../harness/operator.ts";
import { gatewayBefore } from "../harness/server-of-test.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { until } from "../harness/until.ts";

const documents = ["Grass is green.", { text: "The sky is blue because air scatters blue light." }, "The sky"];
const ask = { model: "scripted:embed", query: "blue sky", documents };

async function listed(endpoint: Endpoint, id: string): Promise<Record<string, unknown> | undefined> {
  const { data } = (await (await endpoint.get("/models")).json()) as { data: Record<string, unknown>[] };
  return data.find((model) => model["id"] === id);
}

describe("the demonstration", () => {
  let gateway: GatewayInProcess;
  let issued: Awaited<ReturnType<GatewayInProcess["issue"]>>;
  let endpoint: Endpoint;
  beforeAll(async () => {
    gateway = await startGatewayInProcess();
    issued = await gateway.issue();
    endpoint = issued.endpoint;
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  const post = (path: string, body: object): Promise<Response> =>
    endpoint.post(new URL(path, endpoint.baseUrl).href, body);

  test.each(["/v1/rerank", "/rerank", "/v2/rerank"])(
    "the demonstration orders documents by the words of the query at %s",
    async (path) => {
      const response = await post(path, { ...ask, top_n: 2, return_documents: true });
      expect(response.status).toBe(200);
      expect(await response.json()).toMatchObject({
        object: "list",
        model: "scripted:embed",
        usage: { prompt_tokens: 20, total_tokens: 20 },
        results: [
          { index: 1, relevance_score: 1, document: { text: "The sky is blue because air scatters blue light." } },
          { index: 2, relevance_score: 0.5, document: { text: "The sky" } },
        ],
      });
    },
  );

  test("the demonstration scores texts in their order at /v1/score", async () => {
    const response = await post("/v1/score", { model: "scripted:embed", text_1: "blue sky", text_2: ["grass", "sky"] });
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({
      id: expect.stringMatching(/^score-/),
      object: "list",
      created: expect.closeTo(Date.now() / 1_000, -2),
      model: "scripted:embed",
      data: [
        { index: 0, object: "score", score: 0 },
        { index: 1, object: "score", score: 0.5 },
      ],
      usage: { prompt_tokens: 6, total_tokens: 6 },
    });
  });

  test("the demonstration tells the ability in the list of models, and only of models that have it", async () => {
    expect(await listed(endpoint, "scripted:embed")).toMatchObject({ x_capabilities: ["rerank"] });
    expect(await listed(endpoint, "scripted")).not.toHaveProperty("x_capabilities");
  });

  test("the demonstration counts the tokens of the machine in the usage of the key", async () => {
    const counted = await Operator.beside(gateway.store).booked(issued.record.id);
    expect(counted).toMatchObject({ completionTokens: 0 });
    expect(counted.promptTokens).toBeGreaterThan(0);
  });
});

const asked = { model: "r", query: "sky", documents: ["a short one", "the longest of the documents", "x"] };

const rerankers = {
  "llama-server": {
    runtime: "llama-server",
    start: () => FakeLlamaServer.start({ model: { name: "r", reranking: true } }),
    embedding: false,
    tokens: 15,
  },
  "vLLM with a model that only reranks": {
    runtime: "vllm",
    start: () => FakeVllm.start({ models: [{ id: "r" }], task: "score" }),
    embedding: false,
    tokens: 18,
  },
  "vLLM with a model for embeddings": {
    runtime: "vllm",
    start: () => FakeVllm.start({ models: [{ id: "r" }], task: "embed" }),
    embedding: true,
    tokens: 18,
  },
} as const;

test.each(Object.entries(rerankers))(
  "%s is found to rerank, is asked on its own path, and its tokens are reported",
  async (_, { runtime, start, embedding, tokens }) => {
    await using server = await start();
    const { endpoint } = await (await gatewayBefore(runtime, server)).issue();
    const model = await until(
      async () => {
        const found = await listed(endpoint, "r");
        return found?.["x_capabilities"] === undefined ? undefined : found;
      },
      { what: "the model to be known as a reranker" },
    );
    expect(model).toMatchObject({ capabilities: { completion: false, embedding }, x_capabilities: ["rerank"] });
    const response = await endpoint.rerank(asked);
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({
      model: "r",
      usage: { total_tokens: tokens },
      results: [
        { index: 1, relevance_score: 18 },
        { index: 0, relevance_score: 1 },
        { index: 2, relevance_score: -9 },
      ],
    });
    const { body } = server.requests.findLast(({ path }) => path === "/v1/rerank") ?? {};
    expect(body).toEqual({ ...asked, top_n: 3 });
  },
);

test("a model that only its operator calls a reranker is offered as one, and a server without the path is a 400", async () => {
  const file = join(folderOfTest(), "models.json");
  await writeFile(file, JSON.stringify({ "*": { x_capabilities: ["rerank"] } }));
  await using server = await FakeOtherServer.start({ models: ["r"] });
  const { endpoint } = await (await gatewayBefore("openai", server, { TRUNKLINE_MODELS_FILE: file })).issue();
  const shown = { capabilities: { completion: false }, x_capabilities: ["rerank"] };
  expect(await listed(endpoint, "r")).toMatchObject(shown);
  const refused = { status: 400, code: "unsupported_value", param: "model" };
  expect(await refusalOf(endpoint.rerank(asked))).toMatchObject(refused);
});
