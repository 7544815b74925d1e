import { expect, onTestFinished, test } from "vitest";
import type { KeyLimits } from "#shared/records/key-record.ts";
import { FakeOllama } from "../harness/fake-ollama.ts";
import { FakeVllm } from "../harness/fake-vllm.ts";
import { gatewayBefore } from "../harness/server-of-test.ts";

/** Trunkline in front of a model server, as a client of the Messages API sees it. */
async function inFrontOf(runtime: string, fake: AsyncDisposable & { readonly url: string }, limits?: KeyLimits) {
  onTestFinished(() => fake[Symbol.asyncDispose]());
  const { endpoint } = await (await gatewayBefore(runtime, fake)).issue({ scopes: ["m"], limits });
  await endpoint.untilListed("m");
  const headers = { "anthropic-version": "2023-06-01" };
  const post = (path: string, body: object): Promise<Response> =>
    endpoint.post(path, { model: "m", ...body }, { headers });
  const count = async (body: object) => {
    const response = await post("/messages/count_tokens", body);
    const { input_tokens: tokens } = (await response.json()) as { input_tokens?: number };
    return { status: response.status, tokens, isEstimate: response.headers.get("x-trunkline-estimate") === "true" };
  };
  return { post, count };
}

const user = (content: unknown) => ({ role: "user", content });
const hello = { messages: [user("one two three")] };

test("a prompt is counted exactly where the model server counts, also when it is larger than a message of the broker", async () => {
  const fake = await FakeVllm.start({ models: [{ id: "m" }], maxModelLen: 200_000 });
  const vllm = await inFrontOf("vllm", fake);
  expect(await vllm.count(hello)).toEqual({ status: 200, tokens: 3, isEstimate: false });
  const long = { messages: [user("word ".repeat(100_000))] };
  expect(await vllm.count(long)).toEqual({ status: 200, tokens: 100_000, isEstimate: false });
});

test("a prompt is counted by an estimate that says so, where the model server does not count", async () => {
  const ollama = await inFrontOf("ollama", await FakeOllama.start({ models: [{ name: "m:latest" }] }));
  const { tokens, ...told } = await ollama.count(hello);
  expect(told).toEqual({ status: 200, isEstimate: true });
  expect(tokens).toBeGreaterThanOrEqual(3);
});

test("a prompt is counted by the tokens of the turn that was answered, and an estimate of the messages behind it", async () => {
  const fake = await FakeOllama.start({ models: [{ name: "m:latest" }] });
  fake.onChat = (chat) => {
    chat.say("Fine.");
    chat.done({ prompt_eval_count: 333 });
  };
  const ollama = await inFrontOf("ollama", fake);
  const answered = await ollama.post("/messages", { ...hello, max_tokens: 10 });
  expect(answered.status).toBe(200);
  await answered.text();
  const next = { messages: [...hello.messages, { role: "assistant", content: "Fine." }, user("And now?")] };
  const { tokens, isEstimate } = await ollama.count(next);
  expect(isEstimate).toBe(true);
  expect(tokens).toBeGreaterThan(333);
  expect(tokens).toBeLessThan(333 + 100);
});

test("a prompt is counted as one of the requests that its key may send a minute, and refused like a chat beyond them", async () => {
  const fake = await FakeVllm.start({ models: [{ id: "m" }] });
  const vllm = await inFrontOf("vllm", fake, { requestsPerMinute: 2 });
  for (let times = 0; times < 2; times += 1) expect(await vllm.count(hello)).toMatchObject({ status: 200, tokens: 3 });
  const refusal = async (path: string, body: object) => {
    const response = await vllm.post(path, body);
    const { error } = (await response.json()) as { error: { type: string; message: string } };
    return { status: response.status, headers: [...response.headers.keys()], ...error };
  };
  const refused = await refusal("/messages/count_tokens", hello);
  expect(refused).toMatchObject({ status: 429, type: "rate_limit_error" });
  expect(refused.message).toMatch(/^This key may send 2 requests a minute, and has sent them\. Try again in \d+s\.$/);
  expect(refused.headers).toEqual(expect.arrayContaining(["retry-after", "x-ratelimit-remaining-requests"]));
  expect(refused).toEqual(await refusal("/messages", { ...hello, max_tokens: 10 }));
});

test("a prompt is counted for no model outside the scopes of a key", async () => {
  const vllm = await inFrontOf("vllm", await FakeVllm.start({ models: [{ id: "m" }, { id: "other" }] }));
  expect(await vllm.count({ ...hello, model: "other" })).toMatchObject({ status: 404 });
});
