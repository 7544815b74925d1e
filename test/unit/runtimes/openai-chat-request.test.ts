import { expect, test } from "vitest";
import type { Fault } from "#shared/fault/fault.ts";
import { chatBody, type ChatBody } from "#shared/protocol/job-bodies.ts";
import { prefilledText } from "../../../services/agent/runtimes/adjust-answer.ts";
import { llamaServer } from "../../../services/agent/runtimes/openai/llama-server.ts";
import { lmStudio } from "../../../services/agent/runtimes/openai/lm-studio.ts";
import { mlxLm } from "../../../services/agent/runtimes/openai/mlx-lm.ts";
import { openAiChatRequest, openAiTextRequest } from "../../../services/agent/runtimes/openai/openai-request.ts";
import type { OpenAiProfile, RuntimeModel } from "../../../services/agent/runtimes/openai/openai-profile.ts";
import { otherServer } from "../../../services/agent/runtimes/openai/other-server.ts";
import { vllm } from "../../../services/agent/runtimes/openai/vllm.ts";
import { faultThrownBy } from "../../harness/fault-thrown-by.ts";

const every = [vllm, llamaServer, lmStudio, mlxLm, otherServer].map((profile) => [profile.kind, profile] as const);

const question = { role: "user", content: "Hi" } as const;
const tools: ChatBody["tools"] = ["f", "g"].map((name) => ({ type: "function", function: { name } }));
const named = { type: "function", function: { name: "g" } } as const;

/** A conversation in which the model called a tool with these arguments. */
function called(text: string): Pick<ChatBody, "messages"> {
  const call = { id: "c", type: "function", function: { name: "f", arguments: text } } as const;
  return { messages: [{ role: "assistant", tool_calls: [call] }, question] };
}

/** What a server is sent, as it arrives there. */
function request(
  profile: OpenAiProfile,
  body: Partial<ChatBody> = {},
  facts: { model?: RuntimeModel; thinks?: boolean; contextWindow?: number; cacheSalt?: string } = {},
): Record<string, unknown> {
  const { model = { name: "m" }, thinks = true, contextWindow = 4_096, cacheSalt } = facts;
  const whole = chatBody.parse({ messages: [question], ...body });
  const run = { body: whole, capabilities: { thinking: thinks }, contextWindow, cacheSalt };
  return JSON.parse(JSON.stringify(openAiChatRequest({ profile, model }, run)));
}

const refusal = (...asked: Parameters<typeof request>): Fault => faultThrownBy(() => request(...asked));

test.each(every)(
  "a request to any OpenAI-shaped server asks %s for a stream with usage, and names only what the client named",
  (kind, profile) => {
    const { max_tokens: limit, return_progress: _progress, stream_options: options, ...rest } = request(profile);
    expect(rest).toEqual({ model: "m", messages: [question], stream: true });
    // The limit of an answer is left to each but mlx-lm.
    expect(limit === undefined).toBe(kind !== "mlx-lm");
    expect(options).toMatchObject({ include_usage: true });
  },
);

test("a request to any OpenAI-shaped server asks only vllm for the tokens so far, and only of one answer", () => {
  const asking = every.filter(([, profile]) => "continuous_usage_stats" in Object(request(profile)["stream_options"]));
  expect(asking.map(([kind]) => kind)).toEqual(["vllm"]);
  for (const [, profile] of asking) {
    expect(request(profile, { n: 2 })["stream_options"]).toEqual({ include_usage: true });
  }
});

test.each(every)("a request to any OpenAI-shaped server asks %s with what every one of them honours", (_, profile) => {
  const given = { max_tokens: 7, temperature: 0, top_p: 0.5, seed: 3, presence_penalty: 1 };
  expect(request(profile, given)).toMatchObject(given);
});

test.each(every)(
  "a request to any OpenAI-shaped server %s is sent the salt of a key only if it knows salts, in chats and in texts",
  (kind, profile) => {
    const salt = kind === "vllm" ? "0f".repeat(16) : undefined;
    expect(request(profile, {}, { cacheSalt: "0f".repeat(16) })["cache_salt"]).toBe(salt);
    const served = { profile, model: { name: "m" } };
    const run = { body: { prompt: "Hi" }, contextWindow: 4_096 };
    expect(openAiTextRequest(served, { ...run, cacheSalt: "0f".repeat(16) })["cache_salt"]).toBe(salt);
    expect(openAiTextRequest(served, run)["cache_salt"]).toBeUndefined();
  },
);

test.each(every)(
  "a request to any OpenAI-shaped server sends %s text as one string, also where it came in parts",
  (_, profile) => {
    const parts = ["a", "b"].map((text) => ({ type: "text", text }) as const);
    const messages: ChatBody["messages"] = [
      { role: "system", content: parts },
      { role: "user", content: parts },
      { role: "assistant", content: parts },
      { role: "tool", content: parts, tool_call_id: "c" },
      question,
    ];
    const sent = request(profile, { messages })["messages"] as { content: unknown }[];
    expect(sent.slice(0, 4).map(({ content }) => content)).toEqual(["ab", "ab", "ab", "ab"]);
  },
);

test.each(every)(
  "a request to any OpenAI-shaped server sends %s empty arguments of an earlier call as an empty object",
  (_, profile) => {
    expect(JSON.stringify(request(profile, called("")))).toContain('"arguments":"{}"');
  },
);

test.each([["[1]"], ["oops"], ['"text"']])(
  "a request to any OpenAI-shaped server refuses earlier arguments that are no object: %s",
  (text) => {
    expect(refusal(vllm, called(text))).toMatchObject({
      code: "invalid_value",
      param: "messages[0].tool_calls[0].function.arguments",
    });
  },
);

test.each([
  ["vllm", vllm, { content: null }],
  ["llama-server", llamaServer, { content: null }],
  ["lm-studio", lmStudio, {}],
  ["mlx-lm", mlxLm, { content: "" }],
])(
  "a request to any OpenAI-shaped server leaves %s in no doubt about a message that only called tools",
  (_, profile, content) => {
    const { messages } = called("{}");
    const [sent] = request(profile, { messages })["messages"] as unknown[];
    expect(sent).toEqual({ ...messages[0], ...content });
  },
);

test.each([
  ["vllm", vllm, { reasoning: "hm", reasoning_content: "hm" }],
  ["llama-server", llamaServer, { reasoning_content: "hm" }],
  ["lm-studio", lmStudio, {}],
  ["mlx-lm", mlxLm, {}],
])(
  "a request to any OpenAI-shaped server gives %s back what the model thought, in its spelling",
  (_, profile, fields) => {
    const messages: ChatBody["messages"] = [{ role: "assistant", content: "a", reasoning_content: "hm" }, question];
    const [sent] = request(profile, { messages })["messages"] as unknown[];
    expect(sent).toEqual({ role: "assistant", content: "a", ...fields });
  },
);

test("a request to any OpenAI-shaped server keeps images as parts, and refuses them where only text is read", () => {
  const content = [
    { type: "text", text: "see" },
    { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } },
  ] as const;
  const messages: ChatBody["messages"] = [{ role: "user", content: [...content] }];
  expect(request(llamaServer, { messages })["messages"]).toEqual([{ role: "user", content }]);
  expect(refusal(mlxLm, { messages })).toMatchObject({ code: "unsupported_value", param: "messages[0].content[1]" });
});

test("the image of a tool's result follows the result, stays in it on llama-server, and is refused by a text server", () => {
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } } as const;
  const messages: ChatBody["messages"] = [
    { role: "assistant", tool_calls: [{ id: "c", type: "function", function: { name: "look", arguments: "{}" } }] },
    { role: "tool", tool_call_id: "c", content: [{ type: "text", text: "Here." }, image] },
    question,
  ];
  expect((request(vllm, { messages })["messages"] as unknown[]).slice(1)).toEqual([
    { role: "tool", tool_call_id: "c", content: "Here." },
    {
      role: "user",
      content: [{ type: "text", text: "The result of 'look':" }, image, { type: "text", text: question.content }],
    },
  ]);
  expect(refusal(mlxLm, { messages })).toMatchObject({ code: "unsupported_value", param: "messages[1].content[1]" });
  expect((request(llamaServer, { messages })["messages"] as unknown[]).slice(1)).toEqual(messages.slice(1));
});

test.each([
  ["llama-server", llamaServer, { n: 2 }, "n"],
  ["lm-studio", lmStudio, { n: 2 }, "n"],
  ["lm-studio", lmStudio, { logprobs: true }, "logprobs"],
  ["mlx-lm", mlxLm, { logprobs: true }, "logprobs"],
  ["mlx-lm", mlxLm, { response_format: { type: "json_object" } } as const, "response_format"],
  ["openai", otherServer, { n: 2 }, "n"],
])("a parameter that a server would ignore is refused by name for %s", (_, profile, body, param) => {
  expect(refusal(profile, body)).toMatchObject({ code: "unsupported_parameter", param });
});

test("a parameter that a server would ignore is not refused where it asks for nothing", () => {
  const neutral = { n: 1, logprobs: false, response_format: { type: "text" }, tool_choice: "auto" } as const;
  expect(request(mlxLm, neutral)).toMatchObject({ stream: true });
});

test("logprobs and tools together are refused for llama-server by the name of the first", () => {
  expect(refusal(llamaServer, { logprobs: true, tools })).toMatchObject({
    code: "unsupported_parameter",
    param: "logprobs",
  });
  expect(request(llamaServer, { logprobs: true, top_logprobs: 3 })).toMatchObject({ logprobs: true, top_logprobs: 3 });
});

test("parallel_tool_calls is sent only to those that know it, and only with tools", () => {
  const off = { tools, parallel_tool_calls: false };
  expect(request(vllm, off)).toMatchObject({ parallel_tool_calls: false });
  expect(request(lmStudio, off)).not.toHaveProperty("parallel_tool_calls");
  expect(request(vllm, { parallel_tool_calls: false })).not.toHaveProperty("parallel_tool_calls");
});

test.each([
  ["vllm", vllm],
  ["openai", otherServer],
])("tool_choice goes to %s in every form", (_, profile) => {
  for (const choice of ["auto", "none", "required", named] as const) {
    expect(request(profile, { tools, tool_choice: choice })).toMatchObject({ tools, tool_choice: choice });
  }
});

test.each([
  ["lm-studio, which takes words only", lmStudio],
  ["llama-server, which takes a name for a mere wish", llamaServer],
])("a tool_choice of a named function offers that one, and requires a call: %s", (_, profile) => {
  expect(request(profile, { tools, tool_choice: named })["tools"]).toEqual([
    { type: "function", function: { name: "g" } },
  ]);
  expect(request(profile, { tools, tool_choice: named })).toMatchObject({ tool_choice: "required" });
  for (const choice of ["none", "required"] as const) {
    expect(request(profile, { tools, tool_choice: choice })).toMatchObject({ tools, tool_choice: choice });
  }
});

test("tool_choice that requires a call is refused for LM Studio's MLX engine, which leaves it to the model", () => {
  const onMlx = { model: { name: "m", onAppleMlx: true } };
  for (const choice of ["required", named] as const) {
    expect(refusal(lmStudio, { tools, tool_choice: choice }, onMlx)).toMatchObject({ param: "tool_choice" });
  }
  expect(request(lmStudio, { tools, tool_choice: "auto" }, onMlx)).toMatchObject({ tools });
});

test("none offers mlx-lm no tools, and what requires a call is refused", () => {
  expect(request(mlxLm, { tools, tool_choice: "none" })).not.toHaveProperty("tools");
  expect(request(mlxLm, { tools })).toMatchObject({ tools });
  for (const choice of ["required", named] as const) {
    expect(refusal(mlxLm, { tools, tool_choice: choice })).toMatchObject({
      code: "unsupported_value",
      param: "tool_choice",
    });
  }
});

test.each(every)("tool_choice without tools asks %s for nothing", (_, profile) => {
  expect(request(profile, { tool_choice: "none" })).not.toHaveProperty("tool_choice");
});

const begun: ChatBody["messages"] = [question, { role: "assistant", content: "Once upon" }];

test.each([
  ["vllm", vllm],
  ["llama-server", llamaServer],
])(
  "a beginning of the answer in the last message is gone on from by %s when it is told to, without an echo",
  (_, profile) => {
    expect(request(profile, { messages: begun })).toMatchObject({
      continue_final_message: true,
      add_generation_prompt: false,
    });
    expect(request(profile)).not.toHaveProperty("continue_final_message");
    expect(profile.prefill).toBe("continues");
  },
);

test.each([
  ["lm-studio", lmStudio],
  ["openai", otherServer],
])(
  "a beginning of the answer in the last message is sent to %s as it is, and what it repeats of it is dropped",
  (_, profile) => {
    expect(request(profile, { messages: begun })).not.toHaveProperty("continue_final_message");
    expect(profile.prefill).toBe("as-the-template");
    expect([prefilledText({ messages: begun }), prefilledText({ messages: [question] })]).toEqual(["Once upon", ""]);
  },
);

test("a beginning of the answer in the last message is refused for mlx-lm, which always begins a new turn", () => {
  expect(refusal(mlxLm, { messages: begun })).toMatchObject({ code: "unsupported_value", param: "messages[1]" });
});

const schema = { type: "json_schema", json_schema: { name: "s", schema: { type: "array" } } } as const;

const anyObject = { type: "json_object" } as const;
test.each([
  ["vllm", vllm, anyObject],
  ["llama-server", llamaServer, anyObject],
  ["openai", otherServer, anyObject],
  ["lm-studio", lmStudio, { type: "json_schema", json_schema: { schema: { type: "object" } } }],
])(
  "response_format goes to %s as it is, but one of any object as a schema where nothing else is known",
  (_, profile, any) => {
    expect(request(profile, { response_format: schema })).toMatchObject({ response_format: schema });
    expect(request(profile, { response_format: anyObject })).toMatchObject({ response_format: any });
  },
);

const off = { enable_thinking: false };
test.each([
  ["vllm", "high", vllm, "high", undefined],
  ["vllm", "none", vllm, undefined, { ...off, thinking: false }],
  ["llama-server", "low", llamaServer, "low", undefined],
  ["llama-server", "none", llamaServer, "none", off],
  ["mlx-lm", "low", mlxLm, undefined, { reasoning_effort: "low" }],
  ["mlx-lm", "none", mlxLm, undefined, off],
] as const)(
  "reasoning_effort goes to %s by name or through the model's template: %s",
  (_, asked, profile, effort, template) => {
    const { reasoning_effort, chat_template_kwargs } = request(profile, { reasoning_effort: asked });
    expect([reasoning_effort, chat_template_kwargs]).toEqual([effort, template]);
  },
);

test("reasoning_effort is refused by name where LM Studio has no such level, unless the model does not think anyway", () => {
  expect(request(lmStudio, { reasoning_effort: "low" })).toMatchObject({ reasoning_effort: "low" });
  for (const effort of ["none", "max"] as const) {
    expect(refusal(lmStudio, { reasoning_effort: effort })).toMatchObject({ param: "reasoning_effort" });
  }
  const anyway = request(lmStudio, { reasoning_effort: "none" }, { thinks: false });
  expect(anyway).not.toHaveProperty("reasoning_effort");
});

test.each(every)(
  "a stop string goes to %s, but not to mlx-lm, which would drop it from the text and go on",
  (kind, profile) => {
    expect(request(profile, { stop: ["x"] })["stop"]).toEqual(kind === "mlx-lm" ? undefined : ["x"]);
  },
);

test("the limit of an answer that the client did not set is the rest of the window for mlx-lm, which would stop at 512 tokens", () => {
  const messages: ChatBody["messages"] = [{ role: "user", content: "x".repeat(4_000) }];
  expect(request(mlxLm, { messages }, { contextWindow: 32_768 })).toMatchObject({ max_tokens: 32_768 - 1_000 });
  expect(request(mlxLm, { messages }, { contextWindow: 1_024 })).toMatchObject({ max_tokens: 512 });
});

test("the limit of an answer is no more than the window for vLLM, which refuses what no answer could reach", () => {
  expect(request(vllm, { max_tokens: 100_000 }, { contextWindow: 8_192 })).toMatchObject({ max_tokens: 8_192 });
  expect(request(vllm, { max_tokens: 8_000 }, { contextWindow: 8_192 })).toMatchObject({ max_tokens: 8_000 });
});

test("llama-server is asked to tell how far it has read the prompt", () => {
  expect(request(llamaServer)).toMatchObject({ return_progress: true });
});
