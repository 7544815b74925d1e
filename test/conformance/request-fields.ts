import type OpenAI from "openai";

/**
 * What becomes of a field that the SDK lets its users send. Honoured: the runtime is asked for it, as `asks` says where
 * that is not the same field with the same value. Ignored: it means nothing for the answer, and is named in a header.
 * Refused: it would change the answer as nothing here can; only a value that asks for nothing passes.
 */
export type Treatment<Value> =
  | { readonly as: "honoured"; readonly value: Value; readonly asks?: object }
  | { readonly as: "ignored"; readonly value: Value }
  | { readonly as: "refused"; readonly value: Value; readonly neutral?: Value; readonly param?: string };

/** One treatment for every field: the compiler insists on those that a new version of the SDK brings. */
type EveryField<Fields> = { readonly [Field in keyof Fields]-?: Treatment<Exclude<Fields[Field], null | undefined>> };

const hello = [{ role: "user" as const, content: "Hello" }];
const weather = { name: "get_weather", parameters: { type: "object", properties: {} } };
const tool = { type: "function" as const, function: weather };
const named = { type: "function" as const, function: { name: "get_weather" } };
const schema = { type: "json_schema" as const, json_schema: { name: "any", schema: { type: "object" } } };

const asked = { as: "honoured" } as const;
const dropped = { as: "ignored" } as const;
const never = { as: "refused" } as const;

export const chatFields = {
  messages: { ...asked, value: hello },
  model: { ...asked, value: "" },
  stream: { ...asked, value: false, asks: {} },
  stream_options: { ...asked, value: { include_usage: true }, asks: {} },
  temperature: { ...asked, value: 0.5 },
  top_p: { ...asked, value: 0.5 },
  frequency_penalty: { ...asked, value: 0.5 },
  presence_penalty: { ...asked, value: -0.5 },
  seed: { ...asked, value: 7 },
  stop: { ...asked, value: "END", asks: { stop: ["END"] } },
  max_tokens: { ...asked, value: 9 },
  max_completion_tokens: { ...asked, value: 9, asks: { max_tokens: 9 } },
  n: { ...asked, value: 1 },
  logit_bias: { ...asked, value: { 50256: -100 } },
  logprobs: { ...asked, value: false, asks: {} },
  top_logprobs: { ...asked, value: 2 },
  tools: { ...asked, value: [tool] },
  tool_choice: { ...asked, value: named },
  parallel_tool_calls: { ...asked, value: false },
  response_format: { ...asked, value: schema },
  reasoning_effort: { ...asked, value: "low" },
  user: { ...dropped, value: "ann" },
  metadata: { ...dropped, value: { team: "blue" } },
  store: { ...dropped, value: true },
  service_tier: { ...dropped, value: "priority" },
  safety_identifier: { ...dropped, value: "ann" },
  prompt_cache_key: { ...dropped, value: "blue" },
  prompt_cache_options: { ...dropped, value: { mode: "explicit" } },
  prompt_cache_retention: { ...dropped, value: "24h" },
  prediction: { ...dropped, value: { type: "content", content: "Hello." } },
  audio: { ...never, value: { voice: "alloy", format: "wav" } },
  modalities: { ...never, value: ["text", "audio"], neutral: ["text"] },
  moderation: { ...never, value: { model: "omni-moderation-latest" } },
  verbosity: { ...never, value: "high", neutral: "medium" },
  web_search_options: { ...never, value: {} },
  functions: { ...never, value: [weather] },
  function_call: { ...never, value: "auto" },
} satisfies EveryField<OpenAI.Chat.ChatCompletionCreateParamsNonStreaming>;

export const streamOptions = {
  include_usage: { ...asked, value: true, asks: {} },
  include_obfuscation: { ...dropped, value: true },
} satisfies EveryField<OpenAI.Chat.ChatCompletionStreamOptions>;

export const assistantFields = {
  role: { ...asked, value: "assistant" },
  content: { ...asked, value: "Hello." },
  name: { ...asked, value: "bob" },
  refusal: { ...asked, value: "No.", asks: { content: "No." } },
  tool_calls: {
    ...asked,
    value: [{ id: "call_1", type: "function", function: { name: "get_weather", arguments: "{}" } }],
  },
  audio: { ...never, value: { id: "audio_1" } },
  function_call: { ...never, value: { name: "get_weather", arguments: "{}" } },
} satisfies EveryField<OpenAI.Chat.ChatCompletionAssistantMessageParam>;

type Role = OpenAI.Chat.ChatCompletionMessageParam["role"];

/** As which role the runtime hears each of them. */
export const roles = {
  system: "system",
  developer: "system",
  user: "user",
  assistant: "assistant",
  tool: "tool",
  function: undefined,
} satisfies Record<Role, Role | undefined>;

type Part = OpenAI.Chat.ChatCompletionContentPart;
const pixel = "data:image/png;base64,iVBORw0KGgo=";

/** What a user's message may be made of. */
export const contentParts = {
  text: { ...asked, value: { type: "text", text: "What is this?" } },
  image_url: { ...asked, value: { type: "image_url", image_url: { url: pixel, detail: "high" } } },
  input_audio: { ...never, value: { type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } } },
  file: { ...never, value: { type: "file", file: { file_id: "file-1" } } },
} satisfies { readonly [Type in Part["type"]]: Treatment<Extract<Part, { type: Type }>> };

type Tool = OpenAI.Chat.ChatCompletionTool;

export const toolTypes = {
  function: { ...asked, value: tool },
  custom: {
    ...asked,
    value: { type: "custom", custom: { name: "shell" } },
    asks: { tools: [{ type: "function", function: { name: "shell" } }] },
  },
} satisfies { readonly [Type in Tool["type"]]: Treatment<Extract<Tool, { type: Type }>> };

const responseTool = { type: "function" as const, ...weather, strict: null };
const textFormat = { type: "json_schema" as const, name: "any", schema: { type: "object" } };

export const responseFields = {
  input: { ...asked, value: "Hello", asks: { messages: hello } },
  instructions: {
    ...asked,
    value: "Be kind.",
    asks: { messages: [{ role: "system", content: "Be kind." }, ...hello] },
  },
  model: { ...asked, value: "" },
  stream: { ...asked, value: false, asks: {} },
  stream_options: { ...asked, value: {}, asks: {} },
  temperature: { ...asked, value: 0.5 },
  top_p: { ...asked, value: 0.5 },
  max_output_tokens: { ...asked, value: 9, asks: { max_tokens: 9 } },
  top_logprobs: { ...asked, value: 2 },
  include: { ...asked, value: ["message.output_text.logprobs"], asks: { logprobs: true } },
  tools: { ...asked, value: [responseTool], asks: { tools: [tool] } },
  tool_choice: { ...asked, value: { type: "function", name: "get_weather" }, asks: { tool_choice: named } },
  parallel_tool_calls: { ...asked, value: false },
  text: { ...asked, value: { format: textFormat }, asks: { response_format: schema } },
  reasoning: { ...asked, value: { effort: "low", summary: "auto" }, asks: { reasoning_effort: "low" } },
  metadata: { ...asked, value: { team: "blue" }, asks: {} },
  store: { ...dropped, value: true },
  truncation: { ...dropped, value: "auto" },
  user: { ...dropped, value: "ann" },
  safety_identifier: { ...dropped, value: "ann" },
  service_tier: { ...dropped, value: "priority" },
  prompt_cache_key: { ...dropped, value: "blue" },
  prompt_cache_options: { ...dropped, value: { mode: "explicit" } },
  prompt_cache_retention: { ...dropped, value: "24h" },
  max_tool_calls: { ...dropped, value: 2 },
  context_management: { ...dropped, value: [{ type: "compaction", compact_threshold: 9_000 }] },
  access_programs: { ...dropped, value: { cyber: "standard" } },
  image: { ...dropped, value: {} },
  background: { ...never, value: true, neutral: false },
  conversation: { ...never, value: "conv_1" },
  moderation: { ...never, value: { model: "omni-moderation-latest" } },
  previous_response_id: { ...never, value: "resp_1" },
  prompt: { ...never, value: { id: "pmpt_1" } },
} satisfies EveryField<OpenAI.Responses.ResponseCreateParamsNonStreaming>;

export const embeddingFields = {
  input: { ...asked, value: "Hello" },
  model: { ...asked, value: "" },
  dimensions: { ...asked, value: 8 },
  encoding_format: { ...asked, value: "float" },
  user: { ...dropped, value: "ann" },
} satisfies EveryField<OpenAI.EmbeddingCreateParams>;

export const completionFields = {
  model: { ...asked, value: "" },
  prompt: { ...asked, value: "Once upon" },
  suffix: { ...asked, value: "the end" },
  max_tokens: { ...asked, value: 9 },
  temperature: { ...asked, value: 0.5 },
  top_p: { ...asked, value: 0.5 },
  frequency_penalty: { ...asked, value: 0.5 },
  presence_penalty: { ...asked, value: -0.5 },
  seed: { ...asked, value: 7 },
  stop: { ...asked, value: "END", asks: { stop: ["END"] } },
  logit_bias: { ...asked, value: { 50256: -100 } },
  logprobs: { ...asked, value: 2 },
  n: { ...asked, value: 2, asks: {} },
  echo: { ...asked, value: true, asks: {} },
  stream: { ...asked, value: false, asks: {} },
  stream_options: { ...asked, value: { include_usage: true }, asks: {} },
  best_of: { ...never, value: 3, neutral: 1 },
  user: { ...dropped, value: "ann" },
} satisfies EveryField<OpenAI.CompletionCreateParamsNonStreaming>;
