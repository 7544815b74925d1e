import { describe, expect, test } from "vitest";
import { everyRuntime, staged, type RuntimeName } from "./staged.ts";

const on = staged(everyRuntime);
const every = Object.keys(everyRuntime) as RuntimeName[];

const oddThoughts: Readonly<Record<string, readonly [RuntimeName, string]>> = {
  "message.thinking, Ollama": [
    "Ollama",
    `
    {… "message":{"role":"assistant","content":"","thinking":"Let"},"done":false}
    {… "message":{"role":"assistant","content":"","thinking":" me see"},"done":false}
    {… "message":{"role":"assistant","content":"Hello"},"done":false}
    {… "message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":20,"eval_count":3}`,
  ],
  "reasoning, vLLM": [
    "vLLM",
    `
    data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}
    data: {… "choices":[{"index":0,"delta":{"reasoning":"Let"},"finish_reason":null}]}
    data: {… "choices":[{"index":0,"delta":{"reasoning":" me see"},"finish_reason":null}]}
    data: {… "choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":"stop","stop_reason":null}]}
    data: [DONE]`,
  ],
  "reasoning_content, older vLLM": [
    "vLLM",
    `
    data: {… "choices":[{"index":0,"delta":{"reasoning_content":"Let"},"finish_reason":null}]}
    data: {… "choices":[{"index":0,"delta":{"reasoning_content":" me see"},"finish_reason":null}]}
    data: {… "choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":"stop"}]}
    data: [DONE]`,
  ],
  "reasoning_content, llama-server": [
    "llama-server",
    `
    data: {… "choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}]}
    data: {… "choices":[{"finish_reason":null,"index":0,"delta":{"reasoning_content":"Let"}}]}
    data: {… "choices":[{"finish_reason":null,"index":0,"delta":{"reasoning_content":" me see"}}]}
    data: {… "choices":[{"finish_reason":null,"index":0,"delta":{"content":"Hello"}}]}
    data: {… "choices":[{"finish_reason":"stop","index":0,"delta":{}}]}
    data: [DONE]`,
  ],
  "both fields, one of them empty, LM Studio": [
    "LM Studio",
    `
    data: {… "choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"","reasoning":"Let"},"finish_reason":null}]}
    data: {… "choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":" me see","reasoning":" me see"},"finish_reason":null}]}
    data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"Hello","reasoning_content":""},"finish_reason":null}]}
    data: {… "choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}
    data: [DONE]`,
  ],
  "reasoning with empty content, and the last thought beside the first text, mlx-lm": [
    "mlx-lm",
    `
    data: {… "choices":[{"index":0,"finish_reason":null,"delta":{"role":"assistant","content":"","reasoning":"Let"}}]}
    data: {… "choices":[{"index":0,"finish_reason":null,"delta":{"role":"assistant","content":"Hello","reasoning":" me see"}}]}
    data: {… "choices":[{"index":0,"finish_reason":"stop","delta":{"role":"assistant","content":""}}]}
    data: [DONE]`,
  ],
};

describe("quirk 13: thoughts in both fields, never empty, never beside text or calls", () => {
  test.each(Object.entries(oddThoughts))("%s", async (_, [runtime, odd]) => {
    expect(await on(runtime).streamed(odd)).toBe(`
data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"reasoning_content":"Let","reasoning":"Let"},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"reasoning_content":" me see","reasoning":" me see"},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"content":"Hello"},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}
data: [DONE]
`);
    expect(await on(runtime).whole(odd)).toMatchObject({
      choices: [{ message: { content: "Hello", reasoning_content: "Let me see", reasoning: "Let me see" } }],
    });
  });

  test.each(every)("a whole answer of %s without thoughts has neither field", async (runtime) => {
    on(runtime).play((chat) => {
      chat.say("Hello");
      chat.done();
    });
    const answer = await on(runtime).endpoint.chat({ model: "m", says: "Hi" });
    expect(await answer.text()).not.toContain("reasoning");
  });

  const thought = (fields: object) => ({
    messages: [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Hello", reasoning_content: "Let me see", ...fields },
      { role: "user", content: "And?" },
    ],
  });

  test.each<[RuntimeName, object]>([
    ["Ollama", { role: "assistant", content: "Hello", thinking: "Let me see" }],
    ["vLLM", { role: "assistant", content: "Hello", reasoning: "Let me see", reasoning_content: "Let me see" }],
    ["llama-server", { role: "assistant", content: "Hello", reasoning_content: "Let me see" }],
    ["LM Studio", { role: "assistant", content: "Hello" }],
    ["mlx-lm", { role: "assistant", content: "Hello" }],
  ])("%s is given earlier thoughts back as %j", async (runtime, sent) => {
    const { messages } = (await on(runtime).asked(thought({}))) as { messages: unknown[] };
    expect(messages[1]).toEqual(sent);
  });
});
