import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import { ollamaRuntime, type OllamaRuntime } from "../../services/agent/runtimes/ollama/ollama.ts";
import { chatOn, textOf, type ChatWish } from "../harness/ask-runtime.ts";
import { FakeOllama } from "../harness/fake-ollama.ts";

const secret = "/root/.ollama at 10.1.2.3";
let ollama: FakeOllama;
let runtime: OllamaRuntime;

beforeEach(async () => {
  ollama = await FakeOllama.start({
    models: [{ name: "llama3.2:latest" }, { name: "nomic:latest", capabilities: ["embedding"] }],
  });
  runtime = ollamaRuntime({ url: ollama.url });
});
afterEach(async () => {
  await runtime.close();
  await ollama.stop();
});

/** A chat that must fail: what was said before, and the fault. */
async function failedChat(wish: ChatWish = { model: "llama3.2" }): Promise<{ said: AnswerEvent[]; fault: Fault }> {
  const said: AnswerEvent[] = [];
  try {
    for await (const batch of chatOn(runtime, wish)) said.push(...batch);
  } catch (error) {
    return { said, fault: Fault.from(error) };
  }
  throw new Error("the chat did not fail");
}

describe("a refusal by Ollama becomes the fault that names its cause", () => {
  test.each([
    [404, `model 'llama3.2' not found ${secret}`, "model_not_found", "model"],
    [400, `x does not support tools ${secret}`, "model_does_not_support_tools", "tools"],
    [400, `"x" does not support thinking ${secret}`, "unsupported_value", "reasoning_effort"],
    [400, `"x" does not support chat ${secret}`, "unsupported_value", "model"],
    [400, `the prompt is longer than the context length ${secret}`, "context_length_exceeded", "messages"],
    [400, `{"error":{"type":"exceed_context_size_error"}} ${secret}`, "context_length_exceeded", "messages"],
    [400, `something else ${secret}`, "bad_request", undefined],
    [401, `unauthorized ${secret}`, "upstream_error", undefined],
    [503, `server busy, please try again. ${secret}`, "server_is_overloaded", undefined],
    [500, `model runner has unexpectedly stopped ${secret}`, "upstream_error", undefined],
    [502, secret, "upstream_error", undefined],
  ])("%d %s", async (status, text, code, param) => {
    ollama.onChat = (chat) => chat.refuse(status, text);
    const { fault } = await failedChat();
    expect(fault).toMatchObject({ code, param });
    expect(fault.message).not.toContain(secret);
    // What Ollama says may quote the prompt, so that not even the log is told.
    expect(fault.internal).not.toContain(secret);
  });

  test("an unknown model is told before a chat is asked of it", async () => {
    expect((await failedChat({ model: "none" })).fault).toMatchObject({ code: "model_not_found", param: "model" });
    expect(ollama.requestsTo("/api/chat")).toEqual([]);
  });
});

describe("an answer that goes wrong keeps what was said and fails", () => {
  test.each([
    ["an error line", `{"error":"CUDA error ${secret}"}\n`, "The runtime failed during its answer."],
    ["a line that is not JSON", `<html>${secret}</html>\n`, "The runtime sent a line that is not JSON."],
    ["a line that makes no sense", '{"message":7}\n', "The runtime sent an invalid line."],
    ["an end before it is done", "", "The runtime ended its answer before it was complete."],
  ])("%s", async (_, bytes, message) => {
    ollama.onChat = (chat) => {
      chat.say("Once upon");
      chat.raw(bytes);
      chat.end();
    };
    const { said, fault } = await failedChat();
    expect(textOf(said)).toBe("Once upon");
    expect(fault).toMatchObject({ code: "upstream_error", message });
  });
});
