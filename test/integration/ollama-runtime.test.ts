import { afterEach, beforeEach, expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { ollamaRuntime, type OllamaRuntime } from "../../services/agent/runtimes/ollama/ollama.ts";
import { chatOn, eventsOf, textOf } from "../harness/ask-runtime.ts";
import { FakeOllama } from "../harness/fake-ollama.ts";
import { until } from "../harness/until.ts";

let ollama: FakeOllama;
let runtime: OllamaRuntime;

beforeEach(async () => {
  ollama = await FakeOllama.start({ models: [{ name: "llama3.2:latest", capabilities: ["completion", "tools"] }] });
  runtime = ollamaRuntime({ url: ollama.url });
});
afterEach(async () => {
  await runtime.close();
  await ollama.stop();
});

test("a chat on Ollama says what Ollama says, and ends with its finish and its counts", async () => {
  expect(await eventsOf(chatOn(runtime, { model: "llama3.2" }))).toEqual([
    { kind: "text", text: "Hello " },
    { kind: "text", text: "from " },
    { kind: "text", text: "Ollama." },
    { kind: "finish", reason: "stop" },
    { kind: "usage", promptTokens: 20, completionTokens: 3 },
  ]);
});

test.each(["llama3.2", "llama3.2:latest"])("a chat on Ollama reaches the model by the name %s", async (model) => {
  for (const known of [false, true]) {
    if (known) await runtime.catalogue(new AbortController().signal);
    expect(textOf(await eventsOf(chatOn(runtime, { model })))).toBe("Hello from Ollama.");
  }
});

test("a chat on Ollama passes on each token as it comes, and shows progress with it", async () => {
  const gate = Promise.withResolvers<void>();
  ollama.onChat = async (chat) => {
    chat.say("first");
    await gate.promise;
    chat.done();
  };
  let progress = 0;
  const said: AnswerEvent[] = [];
  const onProgress = (silence?: string): void => void (silence === undefined && (progress += 1));
  const ended = (async () => {
    for await (const batch of chatOn(runtime, { model: "llama3.2" }, { onProgress })) said.push(...batch);
  })();
  await until(() => textOf(said) === "first", { what: "the first token" });
  const progressBefore = progress;
  gate.resolve();
  await ended;
  expect(progressBefore).toBe(1);
  expect(progress).toBeGreaterThan(progressBefore);
});

test("a chat on Ollama is refused before Ollama is asked for a model that it does not have", async () => {
  const asked = eventsOf(chatOn(runtime, { model: "none" }));
  await expect(asked).rejects.toMatchObject({ code: "model_not_found", param: "model" });
  expect(ollama.requestsTo("/api/chat")).toEqual([]);
});

test("a chat on Ollama is closed at Ollama also when its reader merely stops", async () => {
  ollama.onChat = (chat) => chat.say("first");
  for await (const batch of chatOn(runtime, { model: "llama3.2" })) if (batch.length > 0) break;
  await until(() => ollama.requestsTo("/api/chat")[0]?.closedEarly, { what: "the closed request" });
});
