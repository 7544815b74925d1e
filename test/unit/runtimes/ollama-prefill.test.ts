import { expect, test } from "vitest";
import { chatBody } from "#shared/protocol/job-bodies.ts";
import { ollamaShow } from "../../../services/agent/runtimes/ollama/ollama-catalogue.ts";
import { prefillAsText } from "../../../services/agent/runtimes/ollama/ollama-prefill.ts";
import type { RuntimeConnection } from "../../../services/agent/runtimes/runtime-connection.ts";

const closing = { rendered_template: "<user>Hi<end><assistant>" };

/** The text for a chat of a model with these capabilities, and the requests to Ollama for it. */
async function textFor(fields: Record<string, unknown>, more: { able?: string[]; answer?: object } = {}) {
  const { able = ["completion"], answer = {} } = more;
  const asked: unknown[] = [];
  const ask: RuntimeConnection["ask"] = async (schema, question) => {
    asked.push(question.body);
    return schema.parse({ done: false, _debug_info: closing, ...answer });
  };
  const show = ollamaShow.parse({ capabilities: able, details: { format: "gguf" } });
  const messages = [
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Good d" },
  ];
  const body = chatBody.parse({ messages, ...fields });
  const run = { body, capabilities: show.capabilities, signal: new AbortController().signal };
  const text = await prefillAsText(run, { entry: { name: "m", show, loaded: true }, connection: { ask } });
  return { text, asked };
}

test("a begun answer follows the prompt as Ollama renders it, whatever the template does with a last message", async () => {
  const { text, asked } = await textFor({ temperature: 0, max_tokens: 5, stop: ["x"], top_k: 3 });
  expect(text).toMatchObject({ temperature: 0, max_tokens: 5, stop: ["x"], top_k: 3 });
  expect(text?.prompt).toBe("<user>Hi<end><assistant>Good d");
  expect(asked).toEqual([
    expect.objectContaining({
      messages: [{ role: "user", content: "Hi" }],
      stream: false,
      _debug_render_only: true,
      options: { num_predict: 1 },
    }),
  ]);
});

test("an Ollama that does not render gets the message as it is", async () => {
  expect((await textFor({}, { answer: { _debug_info: undefined, done: true } })).text).toBeUndefined();
});

test("a thinking model is continued as a text only where it is not to think", async () => {
  const able = ["completion", "thinking"];
  expect((await textFor({ reasoning_effort: "none" }, { able })).text).toBeDefined();
  expect((await textFor({}, { able })).asked).toEqual([]);
});

test.each([
  { messages: [{ role: "user", content: "Hi" }] },
  { tools: [{ type: "function", function: { name: "look" } }] },
  { response_format: { type: "json_object" } },
  { logprobs: true },
])("a chat with %o is not made a text", async (fields) => {
  expect(await textFor(fields, { able: ["completion", "tools"] })).toEqual({ text: undefined, asked: [] });
});
