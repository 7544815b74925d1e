import { afterEach, expect, test } from "vitest";
import { ollamaRuntime, type OllamaRuntime } from "../../services/agent/runtimes/ollama/ollama.ts";
import { eventsOf, textOf, textOn, type TextWish } from "../harness/ask-runtime.ts";
import { FakeOllama, type FakeOllamaModel } from "../harness/fake-ollama.ts";

let ended: AsyncDisposableStack | undefined;
afterEach(() => ended?.disposeAsync());

async function start(model: Partial<FakeOllamaModel> = {}): Promise<{ ollama: FakeOllama; runtime: OllamaRuntime }> {
  ended = new AsyncDisposableStack();
  const ollama = ended.use(await FakeOllama.start({ models: [{ name: "m:latest", ...model }] }));
  const runtime = ollamaRuntime({ url: ollama.url });
  ended.defer(() => runtime.close());
  return { ollama, runtime };
}

const answer = (runtime: OllamaRuntime, wish: Partial<TextWish> = {}, options: Parameters<typeof textOn>[2] = {}) =>
  eventsOf(textOn(runtime, { model: "m", ...wish }, options));

test("a text on Ollama is a bare prompt, which is never cut, and whose thoughts are part of the text", async () => {
  const { ollama, runtime } = await start({ capabilities: ["completion", "thinking"] });
  ollama.onText = (text) => {
    text.think("hm");
    text.say(" there");
    text.done();
  };
  expect(textOf(await answer(runtime))).toBe("<think>hm</think> there");
  expect(ollama.requestsTo("/api/generate")[0]?.body).toEqual({
    model: "m",
    prompt: "Once upon a time",
    raw: true,
    stream: true,
    truncate: false,
    think: false,
    options: {},
  });
});

test("a text on Ollama says a thought that was told apart all the same", async () => {
  const { ollama, runtime } = await start();
  ollama.onText = (text) => {
    text.line({ response: " there", thinking: "hm", done: false });
    text.done();
  };
  expect(textOf(await answer(runtime))).toBe("hm there");
});

test("a text on Ollama is filled in before a suffix by the template of a model that was made for it", async () => {
  const { ollama, runtime } = await start({ capabilities: ["completion", "insert"] });
  await answer(runtime, { suffix: "}" });
  expect(ollama.requestsTo("/api/generate")[0]?.body).toMatchObject({ suffix: "}", raw: false });
});

test("a text on Ollama is cut at stop strings in the place of the MLX engine, which is told of none and of no likelihoods", async () => {
  const { ollama, runtime } = await start({ format: "safetensors" });
  const events = await answer(runtime, { stop: ["so o"] });
  expect(textOf(events)).toBe(" and ");
  expect(events.slice(-2)).toMatchObject([{ kind: "finish", reason: "stop" }, { kind: "usage" }]);
  expect(ollama.requestsTo("/api/generate")[0]?.body["options"]).toEqual({});
  await expect(answer(runtime, { logprobs: 1 })).rejects.toMatchObject({ param: "logprobs" });
});

test("a text on Ollama asks for others in place of a token only where some are wanted", async () => {
  const { ollama, runtime } = await start();
  await answer(runtime, { logprobs: 0 });
  await answer(runtime, { logprobs: 3 });
  const [none, some] = ollama.requestsTo("/api/generate").map(({ body }) => body);
  expect(none).toMatchObject({ logprobs: true });
  expect(none).not.toHaveProperty("top_logprobs");
  expect(some).toMatchObject({ logprobs: true, top_logprobs: 3 });
});

test("a text on Ollama has come to its limit where Ollama ends it without a word, since the model repeats itself", async () => {
  const { ollama, runtime } = await start();
  ollama.onText = (text) => {
    for (let again = 0; again < 31; again += 1) text.say("same");
    text.end();
  };
  const events = await answer(runtime, { prompt: "x".repeat(40) });
  expect(events.slice(-2)).toEqual([
    { kind: "finish", reason: "length" },
    { kind: "usage", promptTokens: 10, completionTokens: 31 },
  ]);
});

test("a text on Ollama tells that the model is loaded first", async () => {
  const { runtime } = await start();
  const silences: unknown[] = [];
  await answer(runtime, {}, { onProgress: (silence) => silences.push(silence) });
  expect(silences[0]).toBe("loading");
});

test("a text on Ollama on a model that does not exist, or that only embeds, is refused", async () => {
  const { runtime } = await start({ capabilities: ["embedding"] });
  await expect(answer(runtime, { model: "other" })).rejects.toMatchObject({ code: "model_not_found" });
  await expect(answer(runtime)).rejects.toMatchObject({ code: "unsupported_value", param: "model" });
});
