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

/** The SDK puts the text there by itself. OpenAI sends null where its types have no field. */
type SentResponse = Omit<OpenAI.Responses.Response, "output_text" | "prompt_cache_key" | "safety_identifier">;

const responseHead = { id: "resp_…", object: "response", created_at: 0, model, error: null } as const;
const responseTerms = () => ({
  incomplete_details: null,
  store: false as const,
  access_programs: null,
  max_tool_calls: null,
  prompt_cache_key: null,
  safety_identifier: null,
  service_tier: "default" as const,
  frequency_penalty: 0,
  presence_penalty: 0,
  background: false,
  conversation: null,
  previous_response_id: null,
  truncation: "disabled" as const,
  instructions: "Be kind.",
  max_output_tokens: null,
  metadata: { team: "blue" },
  parallel_tool_calls: true,
  reasoning: { effort: null, summary: null },
  temperature: null,
  text: { format: { type: "text" as const } },
  tool_choice: "auto" as const,
  tools: [],
  top_logprobs: 0,
  top_p: null,
});

const reasoningPart = { type: "reasoning_text" as const, text: "Hm." };
const messagePart = { type: "output_text" as const, text: "Hello.", annotations: [], logprobs: [] };

const reasoningItem = {
  id: "rs_…",
  status: "completed",
  type: "reasoning",
  summary: [],
  content: [reasoningPart],
} satisfies OpenAI.Responses.ResponseReasoningItem;

const messageItem = {
  id: "msg_…",
  status: "completed",
  type: "message",
  role: "assistant",
  content: [messagePart],
} satisfies OpenAI.Responses.ResponseOutputMessage;

const responseUsage = {
  input_tokens: 20,
  input_tokens_details: { cached_tokens: 16, cache_write_tokens: 0 },
  output_tokens: 3,
  output_tokens_details: { reasoning_tokens: 1 },
  total_tokens: 23,
} satisfies OpenAI.Responses.ResponseUsage;

/** Beside what the SDK knows: that it is not kept. */
export const responseOfThoughts = {
  ...responseHead,
  ...responseTerms(),
  status: "completed",
  completed_at: 0,
  output: [reasoningItem, messageItem],
  usage: responseUsage,
} satisfies SentResponse & { store: false };

const begun = {
  ...responseHead,
  ...responseTerms(),
  status: "in_progress" as const,
  completed_at: null,
  output: [],
  usage: null,
};

/** The SDK's type is that of a response that has ended: OpenAI itself sends null until then. */
type ResponseEvent =
  | Exclude<OpenAI.Responses.ResponseStreamEvent, { response: unknown }>
  | { type: `response.${string}`; sequence_number: number; response: Omit<SentResponse, "usage"> & { usage: unknown } };

const inReasoning = { item_id: "rs_…", output_index: 0, content_index: 0 };
const inMessage = { item_id: "msg_…", output_index: 1, content_index: 0 };

export const streamOfResponse = [
  { type: "response.created", sequence_number: 0, response: begun },
  { type: "response.in_progress", sequence_number: 1, response: begun },
  {
    type: "response.output_item.added",
    sequence_number: 2,
    output_index: 0,
    item: { ...reasoningItem, status: "in_progress", content: [] },
  },
  {
    type: "response.content_part.added",
    sequence_number: 3,
    ...inReasoning,
    part: { type: "reasoning_text", text: "" },
  },
  { type: "response.reasoning_text.delta", sequence_number: 4, ...inReasoning, delta: "Hm." },
  { type: "response.reasoning_text.done", sequence_number: 5, ...inReasoning, text: "Hm." },
  { type: "response.content_part.done", sequence_number: 6, ...inReasoning, part: reasoningPart },
  { type: "response.output_item.done", sequence_number: 7, output_index: 0, item: reasoningItem },
  {
    type: "response.output_item.added",
    sequence_number: 8,
    output_index: 1,
    item: { ...messageItem, status: "in_progress", content: [] },
  },
  { type: "response.content_part.added", sequence_number: 9, ...inMessage, part: { ...messagePart, text: "" } },
  { type: "response.output_text.delta", sequence_number: 10, ...inMessage, delta: "Hello.", logprobs: [] },
  { type: "response.output_text.done", sequence_number: 11, ...inMessage, text: "Hello.", logprobs: [] },
  { type: "response.content_part.done", sequence_number: 12, ...inMessage, part: messagePart },
  { type: "response.output_item.done", sequence_number: 13, output_index: 1, item: messageItem },
  { type: "response.completed", sequence_number: 14, response: responseOfThoughts },
] satisfies ResponseEvent[];

const responseCall = (city: string) =>
  ({
    id: "fc_…",
    status: "completed",
    type: "function_call",
    call_id: "call_…",
    name: "get_weather",
    arguments: `{"city":"${city}"}`,
  }) satisfies OpenAI.Responses.ResponseFunctionToolCallItem;

export const outputOfTools = [responseCall("Oslo"), responseCall("Rome")];

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
    message: "The runtime failed during its answer.",
    type: "server_error",
    param: null,
    code: "upstream_error",
  },
} satisfies { error: OpenAI.ErrorObject };

export const failureInResponse = {
  type: "error",
  sequence_number: 5,
  code: "upstream_error",
  message: failureInStream.error.message,
  param: null,
  ...failureInStream,
} satisfies OpenAI.Responses.ResponseErrorEvent & { error: OpenAI.ErrorObject };
