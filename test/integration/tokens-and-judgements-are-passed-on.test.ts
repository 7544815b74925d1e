import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Endpoint, refusalOf } from "../harness/endpoint.ts";
import { FakeLlamaServer } from "../harness/fake-llama-server.ts";
import { FakeMediaServer } from "../harness/fake-media-server.ts";
import { FakeVllm } from "../harness/fake-vllm.ts";
import { gatewayBefore } from "../harness/server-of-test.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";

const post = (endpoint: Endpoint, path: string, body: object): Promise<Response> =>
  endpoint.post(new URL(path, endpoint.baseUrl).href, body);

const servers = {
  vllm: {
    start: () => FakeVllm.start({ models: [{ id: "m" }] }),
    sent: { model: "m", prompt: "blue sky", add_special_tokens: true, return_token_strs: true },
    answer: { count: 2, tokens: [4, 4], token_strs: ["blue", " sky"] },
  },
  "llama-server": {
    start: () => FakeLlamaServer.start({ model: { name: "m" } }),
    sent: { model: "m", content: "blue sky", add_special: true, with_pieces: true },
    answer: { count: 2, tokens: [0, 1], token_strs: ["\ufffd", "sky"] },
  },
};

test.each(Object.entries(servers))(
  "%s tells the tokens of a text and the text of tokens in vLLM's shape, and charges none",
  async (runtime, { start, sent, answer }) => {
    await using server = await start();
    const gateway = await gatewayBefore(runtime, server);
    const { endpoint } = await gateway.issue({ limits: { tokensPerMinute: 1 } });
    const told = await post(endpoint, "/tokenize", { model: "m", prompt: "blue sky", return_token_strs: true });
    expect(told.status).toBe(200);
    expect(await told.json()).toEqual({ ...answer, max_model_len: expect.any(Number) });
    expect(server.requests.findLast(({ path }) => path === "/tokenize")?.body).toEqual(sent);
    const text = await post(endpoint, "/detokenize", { model: "m", tokens: [4, 4] });
    expect([text.status, await text.json()]).toEqual([200, { prompt: "4,4" }]);
    expect(server.requests.findLast(({ path }) => path === "/detokenize")?.body).toEqual({
      model: "m",
      tokens: [4, 4],
    });
  },
);

test("a text of many tokens is told whole, beyond what one message of the broker holds", async () => {
  await using server = await servers.vllm.start();
  const { endpoint } = await (await gatewayBefore("vllm", server)).issue();
  const told = await post(endpoint, "/tokenize", { model: "m", prompt: "sky ".repeat(600_000) });
  const { count, tokens } = (await told.json()) as { count: number; tokens: number[] };
  expect([told.status, count, tokens.length]).toEqual([200, 600_000, 600_000]);
});

test("the ability to tell tokens is in no list of models", async () => {
  await using server = await servers.vllm.start();
  const { endpoint } = await (await gatewayBefore("vllm", server)).issue();
  const { data } = (await (await endpoint.get("/models")).json()) as { data: object[] };
  expect(data).toMatchObject([{ id: "m" }]);
  expect(data[0]).not.toHaveProperty("x_capabilities");
});

test("a server that judges texts, as its operator says, is asked as OpenAI is, and a key whose tokens are limited is refused", async () => {
  const file = join(folderOfTest(), "models.json");
  await writeFile(file, JSON.stringify({ m: { x_capabilities: ["moderation"] } }));
  await using server = await FakeMediaServer.start();
  const gateway = await gatewayBefore("openai", server, { TRUNKLINE_MODELS_FILE: file });
  const { endpoint } = await gateway.issue();
  const ask = { model: "m", input: ["harm", "sky"] };
  const response = await post(endpoint, "/v1/moderations", ask);
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({ results: [{ flagged: true }, { flagged: false }] });
  expect(server.requests.findLast(({ path }) => path === "/v1/moderations")?.body).toEqual(ask);

  const image = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } };
  const parts = { model: "m", input: [{ type: "text", text: "sky" }, image] };
  const judged = await post(endpoint, "/v1/moderations", parts);
  expect([judged.status, await judged.json()]).toMatchObject([200, { results: [{ flagged: true }] }]);
  expect(server.requests.findLast(({ path }) => path === "/v1/moderations")?.body).toEqual(parts);

  expect(await refusalOf(post(endpoint, "/v1/moderations", { input: "sky" }))).toMatchObject({
    status: 404,
    code: "model_not_found",
    message: expect.stringContaining("omni-moderation-latest"),
  });

  const limited = (await gateway.issue({ limits: { tokensPerMinute: 1_000 } })).endpoint;
  expect(await refusalOf(post(limited, "/v1/moderations", ask))).toMatchObject({
    status: 403,
    code: "insufficient_permissions",
  });

  expect(await refusalOf(post(endpoint, "/tokenize", { model: "m", prompt: "sky" }))).toMatchObject({
    status: 400,
    code: "unsupported_value",
    param: "model",
  });
  expect(await refusalOf(post(endpoint, "/tokenize", { model: "m", messages: [] }))).toMatchObject({
    status: 400,
    code: "unsupported_parameter",
    param: "messages",
  });
});
