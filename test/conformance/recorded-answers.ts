import type OpenAI from "openai";

/**
 * What Trunkline really sends, as it was recorded, and held by the compiler against the types of the official SDK. A
 * test holds every answer of today against its record, so that the compiler judges what is sent and not what is meant.
 * Ids and times are masked.
 */

const id = "chatcmpl-…";
const created = 0;
const model = "acme/sees-and-thinks:8b";

const usage = {
  prompt_tokens: 20,
  completion_tokens: 3,
  total_tokens: 23,
  prompt_tokens_details: { cached_tokens: 16 },
  completion_tokens_details: { reasoning_tokens: 1 },
} satisfies OpenAI.CompletionUsage;

const calls = [
  { id: "call_…", type: "function", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } },
  { id: "call_…", type: "function", function: { name: "get_weather", arguments: '{"city":"Rome"}' } },
] as const satisfies OpenAI.Chat.ChatCompletionMessageToolCall[];

export const chatWhole = {
  id,
  object: "chat.completion",
  created,
  model,
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: "Hello there.", refusal: null },
      logprobs: null,
      finish_reason: "stop",
    },
  ],
  usage,
} satisfies OpenAI.Chat.ChatCompletion;

export const chatOfTools = {
  id,
  object: "chat.completion",
  created,
  model,
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: null, refusal: null, tool_calls: [...calls] },
      logprobs: null,
      finish_reason: "tool_calls",
    },
  ],
  usage,
} satisfies OpenAI.Chat.ChatCompletion;

const likely = {
  token: "Hello",
  logprob: -0.5,
  bytes: [72, 101, 108, 108, 111],
  top_logprobs: [{ token: "Hi", logprob: -1.5, bytes: [72, 105] }],
} satisfies OpenAI.Chat.ChatCompletionTokenLogprob;

export const chatOfLogprobs = {
  id,
  object: "chat.completion",
  created,
  model,
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: "Hello", refusal: null },
      logprobs: { content: [likely], refusal: null },
      finish_reason: "length",
    },
  ],
  usage,
} satisfies OpenAI.Chat.ChatCompletion;

/** Thoughts under both names that clients read, beside what the SDK knows. */
interface Thoughts {
  reasoning_content: string;
  reasoning: string;
}

export const chatOfThoughts = {
  id,
  object: "chat.completion",
  created,
  model,
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: "Hello.", refusal: null, reasoning_content: "Hm.", reasoning: "Hm." },
      logprobs: null,
      finish_reason: "stop",
    },
  ],
  usage,
} satisfies OpenAI.Chat.ChatCompletion & { choices: { message: Thoughts }[] };

const chunk = { id, object: "chat.completion.chunk", created, model } as const;
const open = { logprobs: null, finish_reason: null } as const;
const opening = { index: 0, delta: { role: "assistant", content: "", refusal: null }, ...open } as const;

export const streamOfText = [
  { ...chunk, choices: [opening], usage: null },
  { ...chunk, choices: [{ index: 0, delta: { content: "Hello " }, ...open }], usage: null },
  { ...chunk, choices: [{ index: 0, delta: { content: "there." }, ...open }], usage: null },
  { ...chunk, choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: "stop" }], usage: null },
  { ...chunk, choices: [], usage },
] satisfies OpenAI.Chat.ChatCompletionChunk[];

const called = (index: number) =>
  [
    { index, id: "call_…", type: "function", function: { name: "get_weather", arguments: "" } },
    { index, function: { arguments: calls[index]?.function.arguments ?? "" } },
  ] satisfies OpenAI.Chat.ChatCompletionChunk.Choice.Delta.ToolCall[];

export const streamOfTools = [
  { ...chunk, choices: [opening] },
  ...[...called(0), ...called(1)].map((call) => {
    return { ...chunk, choices: [{ index: 0, delta: { tool_calls: [call] }, ...open }] };
  }),
  { ...chunk, choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: "tool_calls" }] },
] satisfies OpenAI.Chat.ChatCompletionChunk[];

export const streamOfLogprobs = [
  { ...chunk, choices: [opening] },
  {
    ...chunk,
    choices: [
      { index: 0, delta: { content: "Hello" }, logprobs: { content: [likely], refusal: null }, finish_reason: null },
    ],
  },
  { ...chunk, choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: "length" }] },
] satisfies OpenAI.Chat.ChatCompletionChunk[];

export const streamOfThoughts = [
  { ...chunk, choices: [opening] },
  { ...chunk, choices: [{ index: 0, delta: { reasoning_content: "Hm.", reasoning: "Hm." }, ...open }] },
  { ...chunk, choices: [{ index: 0, delta: { content: "Hello." }, ...open }] },
  { ...chunk, choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: "stop" }] },
] satisfies (OpenAI.Chat.ChatCompletionChunk & { choices: { delta: Partial<Thoughts> }[] })[];

export const embeddings = {
  object: "list",
  data: [
    { object: "embedding", index: 0, embedding: [0.8457441241594856, -0.533588677212799] },
    { object: "embedding", index: 1, embedding: [0.8316585219909258, 0.555287405583693] },
  ],
  model: "scripted:embed",
  usage: { prompt_tokens: 2, total_tokens: 2 },
} satisfies OpenAI.CreateEmbeddingResponse;

/** The SDK has no type for what it decodes by itself. */
type AsBase64<Answer extends { data: { embedding: unknown }[] }> = Omit<Answer, "data"> & {
  data: (Omit<Answer["data"][number], "embedding"> & { embedding: string })[];
};

export const embeddingsAsBase64 = {
  object: "list",
  data: [{ object: "embedding", index: 0, embedding: "sIJYP0SZCL8=" }],
  model: "scripted:embed",
  usage: { prompt_tokens: 1, total_tokens: 1 },
} satisfies AsBase64<OpenAI.CreateEmbeddingResponse>;

const legacyLogprobs = {
  tokens: [" upon"],
  token_logprobs: [-0.25],
  top_logprobs: [{ " upon": -0.25 }],
  text_offset: [0],
} satisfies OpenAI.CompletionChoice.Logprobs;

const completionUsage = {
  prompt_tokens: 20,
  completion_tokens: 3,
  total_tokens: 23,
} satisfies OpenAI.CompletionUsage;

export const textWhole = {
  id: "cmpl-…",
  object: "text_completion",
  created,
  model,
  choices: [{ text: " upon", index: 0, logprobs: legacyLogprobs, finish_reason: "stop" }],
  usage: completionUsage,
} satisfies OpenAI.Completion;

/** The SDK's type is that of a whole answer: OpenAI itself sends null until it has finished. */
type TextEvent = Omit<OpenAI.Completion, "choices" | "usage"> & {
  choices: (Omit<OpenAI.CompletionChoice, "finish_reason"> & {
    finish_reason: OpenAI.CompletionChoice["finish_reason"] | null;
  })[];
  usage: OpenAI.CompletionUsage | null;
};

const textChunk = { id: "cmpl-…", object: "text_completion", created, model } as const;

export const streamOfContinuation = [
  {
    ...textChunk,
    choices: [{ text: " upon", index: 0, logprobs: legacyLogprobs, finish_reason: null }],
    usage: null,
  },
  { ...textChunk, choices: [{ text: "", index: 0, logprobs: null, finish_reason: "stop" }], usage: null },
  { ...textChunk, choices: [], usage: completionUsage },
] satisfies TextEvent[];

/** Beside OpenAI's own fields, those of the contract. */
export const listed = {
  id: model,
  object: "model",
  created,
  owned_by: "acme",
  capabilities: { completion: true, vision: true, embedding: false, tools: true, thinking: true },
  context_window: 32_768,
  size_mb: 0,
  runtime_profile: "auto",
} satisfies OpenAI.Model & {
  capabilities: Record<"completion" | "vision" | "embedding" | "tools" | "thinking", boolean>;
  context_window: number;
  size_mb: number;
  runtime_profile: "auto" | "apple-mlx";
};

export const failure = {
  error: {
    message: "The model 'absent' does not exist or this key may not use it.",
    type: "invalid_request_error",
    param: "model",
    code: "model_not_found",
  },
} satisfies { error: OpenAI.ErrorObject };

export const failureInStream = {
  error: {
    message: "The runtime failed in the middle of its answer.",
    type: "server_error",
    param: null,
    code: "upstream_error",
  },
} satisfies { error: OpenAI.ErrorObject };
