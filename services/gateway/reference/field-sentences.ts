import type { SchemaName } from "./public-schemas.ts";
import { responseSentences } from "./response-sentences.ts";

/** A sentence for each field, by its path. */
export type Sentences = Readonly<Record<string, string>>;

const name = "A name for whoever speaks, for models that tell several apart.";
const partType = "What the part is.";
const text = "The text.";

const common: Sentences = {
  model: "The id of the model that is to answer: one of `GET /v1/models`.",
  stream: "Whether the answer is sent piece by piece, as server-sent events. False unless given.",
  stream_options: "What a stream is to hold; only with `stream`.",
  "stream_options.include_usage": "Whether the last chunk tells what the request used.",
  temperature: "How freely the model chooses its words: 0 is the least. The model's own unless given.",
  top_p: "Of how much of the likeliest words the model chooses: 0.1 is of the likeliest tenth.",
  frequency_penalty: "How much less likely a token becomes each time it was said; below 0 more likely.",
  presence_penalty: "How much less likely a token becomes once it was said; below 0 more likely.",
  seed: "The same seed with the same request gives the same answer, as far as the runtime can do that.",
  stop: "Texts before which the answer ends: one, or several.",
  logit_bias: "By token ids of the model's own tokenizer: how much likelier each is made; -100 forbids it.",
};

/**
 * Descriptions of the fields that have none in their schema. A test checks that no field is missing and none is left
 * over.
 */
export const fieldSentences: Readonly<Partial<Record<SchemaName, Sentences>>> = {
  ...responseSentences,
  ChatRequest: {
    ...common,
    messages: "The conversation so far, the oldest message first.",
    tools: "The functions that the model may call. Only for models whose `capabilities.tools` is true.",
    tool_choice: "Which of the tools may be called, and whether one has to be. `auto` unless given.",
    parallel_tool_calls: "Whether the model may call several tools at once. True unless given.",
    max_tokens: "The older name of `max_completion_tokens`. Where both are given they must say the same.",
    max_completion_tokens: "How many tokens each answer has at most, thoughts included. As many as fit unless given.",
    n: "How many answers are wanted. 1 unless given; each uses tokens of its own.",
    logprobs: "Whether it is told how likely each token of the answer was.",
    top_logprobs: "How many likely others are told beside each token; only with `logprobs`.",
    response_format: "What form the text has. `text` unless given.",
    reasoning_effort: "How much the model thinks before it answers, for models whose `capabilities.thinking` is true.",
  },
  CompletionRequest: {
    ...common,
    prompt: "The text that is to be continued as it is, or several, each on its own. Text, not tokens.",
    suffix: "What is to follow the answer, for models that can fill a gap.",
    echo: "Whether each answer begins with its prompt. Not together with `logprobs`.",
    max_tokens: "How many tokens each answer has at most. 16 unless given.",
    n: "How many answers to each prompt are wanted. 1 unless given.",
    best_of: "Can only be what `n` is: no answer is made that is not given.",
    logprobs: "Tells how likely each token was, and how many likely others are told beside it.",
  },
  EmbeddingsRequest: {
    model: "The id of the model that is to make the vectors: one whose `capabilities.embedding` is true.",
    input: "The text that is to become a vector, or several. Text, not tokens.",
    encoding_format: "How vectors are written. `float` unless given; official clients ask for `base64`.",
    dimensions: "How many numbers a vector has, for models that can make shorter ones.",
  },
  SystemMessage: {
    role: "What the model is to go by in all that follows.",
    content: "The text, or parts of it.",
    "content.type": partType,
    "content.text": text,
    name,
  },
  DeveloperMessage: {
    role: "The newer name of the same: what the model is to go by.",
    content: "The text, or parts of it.",
    "content.type": partType,
    "content.text": text,
    name,
  },
  UserMessage: {
    role: "What the user says.",
    content: "The text, or parts: texts, and images for models whose `capabilities.vision` is true.",
    "content.type": partType,
    "content.text": text,
    "content.image_url": "An image.",
    "content.image_url.url": "The image itself, as a `data:` URL. Other addresses are refused: machines fetch nothing.",
    "content.image_url.detail": "How closely the image is looked at, where the runtime can choose.",
    name,
  },
  AssistantMessage: {
    role: "What the model said before.",
    content: "The text, or parts of it; null or absent where it only called tools.",
    "content.type": partType,
    "content.text": text,
    "content.refusal": "What the model said in refusing; taken as text.",
    refusal: "What the model said in refusing, where there is no content.",
    reasoning_content: "What the model thought, as its answer said it.",
    reasoning: "The same by its other name.",
    tool_calls: "The tools that it called. Each must be answered by a tool's message right after this one.",
    name,
  },
  ToolMessage: {
    role: "What a tool answered.",
    content: "The text, or parts of it.",
    "content.type": partType,
    "content.text": text,
    tool_call_id: "The id of the call that this answers.",
  },
  Tool: {
    type: "What the tool is.",
    function: "The function that the model may call.",
    "function.name": "Its name: letters, digits, underscores and hyphens.",
    "function.description": "What it does and when to call it, for the model to read.",
    "function.parameters": "What it takes, as a JSON Schema of an object. Nothing unless given.",
    "function.strict": "Whether the model has to keep to the schema exactly, where the runtime can make it.",
  },
  ToolChoice: {
    type: "One function that is to be called, or some of the tools that may be.",
    function: "The function that is to be called.",
    "function.name": "Its name, which is one of `tools`.",
    allowed_tools: "The only tools that may be called.",
    "allowed_tools.mode": "Whether one of them may be called, or has to be.",
    "allowed_tools.tools": "The tools, by their names.",
    "allowed_tools.tools.type": "What the tool is.",
    "allowed_tools.tools.function": "The function.",
    "allowed_tools.tools.function.name": "Its name, which is one of `tools`.",
  },
  ToolCall: {
    id: "The id of this call; the tool's message names it.",
    type: "What is called.",
    function: "The function, and what it is given.",
    "function.name": "The function's name.",
    "function.arguments": "Its arguments, as a text of JSON. The model wrote it: check it.",
  },
  ResponseFormat: {
    type: "Any text, any JSON object, or JSON that fits a schema.",
    schema: "With `json_object`: a schema that the answer is to fit, as if it stood in `json_schema`.",
    json_schema: "The schema that the answer is to fit.",
    "json_schema.name": "A name for it.",
    "json_schema.description": "What it is for, for the model to read.",
    "json_schema.schema": "The JSON Schema itself.",
    "json_schema.strict": "Whether the answer has to fit it exactly, where the runtime can make it.",
  },
  TokenLogprob: {
    token: "The token, as text.",
    logprob: "How likely it was, as a logarithm: 0 is certain.",
    bytes: "The bytes of the token in UTF-8; null where it has none.",
    top_logprobs: "The tokens that were likeliest in its place: as many as `top_logprobs` asked for.",
    "top_logprobs.token": "The token, as text.",
    "top_logprobs.logprob": "How likely it was, as a logarithm.",
    "top_logprobs.bytes": "The bytes of the token in UTF-8; null where it has none.",
  },
  Model: {
    id: "What to name in requests: `name` or `name:variant`, perhaps with a namespace before it.",
    object: "What this is.",
    created: "When the model came to be, in seconds since 1970. The same after every restart.",
    owned_by: "Whose it is.",
    capabilities: "What it can do.",
    context_window: "How many tokens a request and its answer may have together.",
    size_mb: "How much room it takes on a disk, in millions of bytes.",
    runtime_profile: "Where it runs: on any host, or with MLX on Apple silicon only.",
    apple_mlx: "Only there, and then true, where MLX runs it.",
  },
  Capabilities: {
    completion: "It completes chats and texts.",
    vision: "It looks at images.",
    embedding: "It makes vectors of texts.",
    tools: "It calls tools.",
    thinking: "It can think before it answers.",
  },
};
