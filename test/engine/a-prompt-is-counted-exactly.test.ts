import { describe, expect, test } from "vitest";
import type { ChatMessage, ToolDefinition } from "#shared/protocol/job-bodies.ts";
import { thinkingTemplate } from "./templates.ts";
import { type Asked, noEngine, only, TinyRuntime } from "./tiny-runtime.ts";

const weather: ToolDefinition = {
  type: "function",
  function: { name: "weather", description: "The weather.", parameters: { type: "object", properties: {} } },
};
const messages: ChatMessage[] = [
  { role: "system", content: "Be short." },
  { role: "user", content: "How is the weather? <|end|>" },
  {
    role: "assistant",
    content: "I look.",
    reasoning_content: "A look helps.",
    tool_calls: [{ id: "1", type: "function", function: { name: "weather", arguments: "{}" } }],
  },
  { role: "tool", tool_call_id: "1", content: "Sunny, 21 \u00b0C" },
];

describe.skipIf(noEngine)("a prompt is counted as the engine counts it in an answer", () => {
  test.each<[string, Asked]>([
    ["with one word", {}],
    ["with a conversation and tools", { messages, tools: [weather] }],
    ["with tools that the model may not call", { messages, tools: [weather], tool_choice: "none" }],
    ["without thoughts", { messages, reasoning_effort: "none" }],
  ])("%s", async (_, asked) => {
    const scripts = { "<|assistant|>": ["Fine."] };
    await using tiny = await TinyRuntime.start({
      name: "m",
      scripts,
      template: thinkingTemplate,
      contextTokens: 4_096,
    });
    const usage = only(await tiny.events({ ...asked, max_tokens: 1 }), "usage");
    expect(await tiny.counted(asked)).toBe(usage?.promptTokens);
  });

  test("a prompt is counted as the engine counts it in an answer unless its model is not in memory: a count loads none", async () => {
    const scripts = { "<|assistant|>": ["Fine."] };
    await using tiny = await TinyRuntime.start([
      { name: "one", scripts },
      { name: "two", scripts },
    ]);
    await expect(tiny.counted()).rejects.toMatchObject({ code: "invalid_value", param: "model" });
  });
});
