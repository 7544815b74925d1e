import { afterEach, beforeEach, describe, expect, test } from "vitest";
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

/** Starts a chat that can be aborted, and keeps what it says. */
function startChat() {
  const abort = new AbortController();
  const said: AnswerEvent[] = [];
  let progress = 0;
  const onProgress = (silence?: string): void => {
    if (silence === undefined) progress += 1;
  };
  const options = { signal: abort.signal, onProgress };
  const ended = (async () => {
    for await (const batch of chatOn(runtime, { model: "llama3.2" }, options)) said.push(...batch);
  })();
  return { abort, said, ended, progress: () => progress };
}

describe("a chat on Ollama", () => {
  test("says what Ollama says, and ends with its finish and its counts", async () => {
    expect(await eventsOf(chatOn(runtime, { model: "llama3.2" }))).toEqual([
      { kind: "text", text: "Hello " },
      { kind: "text", text: "from " },
      { kind: "text", text: "Ollama." },
      { kind: "finish", reason: "stop" },
      { kind: "usage", promptTokens: 20, completionTokens: 3 },
    ]);
  });

  test.each(["llama3.2", "llama3.2:latest"])("reaches the model by the name %s", async (model) => {
    for (const known of [false, true]) {
      if (known) await runtime.catalogue(new AbortController().signal);
      expect(textOf(await eventsOf(chatOn(runtime, { model })))).toBe("Hello from Ollama.");
    }
  });

  test("passes on each token as it comes, and shows progress with it", async () => {
    const gate = Promise.withResolvers<void>();
    ollama.onChat = async (chat) => {
      chat.say("first");
      await gate.promise;
      chat.done();
    };
    const { said, ended, progress } = startChat();
    await until(() => textOf(said) === "first", { what: "the first token" });
    const progressBefore = progress();
    gate.resolve();
    await ended;
    expect(progressBefore).toBe(1);
    expect(progress()).toBeGreaterThan(progressBefore);
  });

  test("keeps characters whole that come in two pieces", async () => {
    const bytes = Buffer.from(`${JSON.stringify({ message: { content: "grüße 🌍" }, done: false })}\n`);
    const within = bytes.indexOf("🌍") + 2;
    const gate = Promise.withResolvers<void>();
    ollama.onChat = async (chat) => {
      chat.raw(bytes.subarray(0, within));
      await gate.promise;
      chat.raw(bytes.subarray(within));
      chat.done();
    };
    const { said, ended, progress } = startChat();
    await until(() => progress() === 1, { what: "the first piece" });
    gate.resolve();
    await ended;
    expect(textOf(said)).toBe("grüße 🌍");
  });

  test("takes and gives whole tool calls", async () => {
    const call = { id: "call_x", function: { index: 0, name: "look", arguments: { at: "it" } } };
    ollama.onChat = (chat) => chat.done({ message: { role: "assistant", content: "", tool_calls: [call] } });
    const tools = [{ type: "function" as const, function: { name: "look" } }];
    expect((await eventsOf(chatOn(runtime, { model: "llama3.2", tools }))).slice(0, 3)).toEqual([
      { kind: "tool-call-start", index: 0, id: "call_x", name: "look" },
      { kind: "tool-call-delta", index: 0, arguments: '{"at":"it"}' },
      { kind: "finish", reason: "tool_calls" },
    ]);
    expect(ollama.requestsTo("/api/chat")[0]?.body).toMatchObject({ tools });
  });
});

describe("aborting a chat closes the request to Ollama", () => {
  const reason = new Error("nobody waits");

  test("while Ollama is silent", async () => {
    ollama.onChat = () => {};
    const { abort, ended } = startChat();
    const request = await until(() => ollama.requestsTo("/api/chat")[0], { what: "the request" });
    abort.abort(reason);
    await expect(ended).rejects.toBe(reason);
    await until(() => request.closedEarly, { what: "the closed request" });
  });

  test("in the middle of an answer", async () => {
    ollama.onChat = (chat) => chat.say("first");
    const { abort, said, ended } = startChat();
    await until(() => said.length > 0, { what: "the first token" });
    abort.abort(reason);
    await expect(ended).rejects.toBe(reason);
    await until(() => ollama.requestsTo("/api/chat")[0]?.closedEarly, { what: "the closed request" });
  });

  test("also when whoever reads merely stops", async () => {
    ollama.onChat = (chat) => chat.say("first");
    for await (const batch of chatOn(runtime, { model: "llama3.2" })) if (batch.length > 0) break;
    await until(() => ollama.requestsTo("/api/chat")[0]?.closedEarly, { what: "the closed request" });
  });

  test("before it is even sent, when the signal has aborted already", async () => {
    const signal = AbortSignal.abort(reason);
    await expect(eventsOf(chatOn(runtime, { model: "llama3.2" }, { signal }))).rejects.toBe(reason);
    expect(ollama.requestsTo("/api/chat")).toEqual([]);
  });
});
