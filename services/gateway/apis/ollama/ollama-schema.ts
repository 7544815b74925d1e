import { z } from "zod";
import { modelId, modelIdCharactersMax } from "#shared/protocol/model.ts";
import { chatBody, embedBody, embedInputsMax, responseFormat, toolsMax } from "#shared/protocol/job-bodies.ts";
import { messagesMax } from "../../chats/read-chat.ts";
import { isEmptyList, samplingFields, type UnsupportedFields } from "../../requests/request-fields.ts";
import { outerTool, outerToolName } from "../../chats/request-tools.ts";
import { runtimeChatFields, runtimeSampling } from "../../chats/runtime-fields.ts";

const inner = chatBody.shape;
const { top_k, min_p, typical_p, repeat_penalty } = runtimeSampling;

/** The sampling settings of a request. Other settings belong to the machine, and are ignored by name. */
const ollamaOptions = z.object({
  num_predict: inner.max_tokens.nullable().describe("The most tokens of the answer; below 0 as many as fit."),
  ...samplingFields,
  top_k,
  min_p,
  typical_p,
  repeat_penalty,
});

const images = z.array(z.string()).nullish().describe("Images in base64, for models that look at images.");

/** A call of a tool as clients send it back. Older clients send no id. */
const ollamaCall = z.object({
  id: z.string().min(1).nullish(),
  function: z.object({
    index: z.int().nullish().describe("The number of the call, from 0."),
    name: outerToolName,
    arguments: z.record(z.string(), z.unknown()).nullish().describe("The arguments as an object."),
  }),
});

/** One message of a conversation as Ollama's clients write it. A result names its call, its tool, or neither. */
export const ollamaMessage = z.object({
  role: z.enum(["system", "user", "assistant", "tool"]),
  content: z.string().nullish().describe("The text."),
  thinking: z.string().nullish().describe("The thoughts of an earlier answer."),
  images,
  tool_calls: z.array(ollamaCall).max(toolsMax).nullish(),
  tool_name: z.string().nullish().describe("The tool whose result this is."),
  tool_call_id: z.string().nullish(),
  name: z.string().nullish().describe("The older name of `tool_name`."),
});
export type OllamaMessage = z.infer<typeof ollamaMessage>;

const [, , jsonSchema] = responseFormat.options;

/** The fields that chats and prompts share. */
const shared = {
  model: modelId,
  stream: z.boolean().nullish().describe("False for an answer in one piece; true unless given."),
  format: z.union([z.enum(["", "json"]), jsonSchema.shape.json_schema.shape.schema]).nullish(),
  think: runtimeChatFields.think.describe("The switch for thinking before the answer, or its effort."),
  logprobs: inner.logprobs.nullable().describe("True if the probability of each token is to be told."),
  top_logprobs: inner.top_logprobs.nullable(),
  options: ollamaOptions.nullish().describe("Settings of the answer."),
};

export const ollamaChatRequest = z.object({
  ...shared,
  messages: z.array(ollamaMessage).max(messagesMax).nullish(),
  tools: z.array(outerTool).max(toolsMax).nullish(),
});

export const ollamaGenerateRequest = z.object({
  ...shared,
  prompt: z.string().nullish().describe("The prompt. Without one the answer says `load` at once."),
  system: z.string().nullish().describe("Instructions to the model, which stand before the prompt."),
  suffix: z.string().nullish().describe("The text behind the answer, for models that fill in."),
  raw: z.boolean().nullish().describe("True if the prompt goes to the model without its template."),
  images,
});

const embedder = modelId.describe("The id of a model whose capabilities hold `embedding`.");

export const ollamaEmbedRequest = z.object({
  model: embedder,
  input: z.union([z.string(), z.array(z.string().min(1)).max(embedInputsMax)]),
  dimensions: embedBody.shape.dimensions.nullable(),
});

export const ollamaEmbeddingsRequest = z.object({
  model: embedder,
  prompt: z.string().nullish().describe("The text that is to become a vector."),
});

/** A request for the properties of a model. Clients send an empty text for the name that they do not use. */
const shownName = z.string().max(modelIdCharactersMax).nullish();
export const ollamaShowRequest = z.object({
  model: shownName.describe("The id of the model."),
  name: shownName.describe("The older name of `model`."),
});

export type OllamaChatRequest = z.infer<typeof ollamaChatRequest>;
export type OllamaGenerateRequest = z.infer<typeof ollamaGenerateRequest>;

const is = (wanted: unknown) => (value: unknown) => value === wanted;
const nothingIsCut = { why: "must be true or false", isNeutral: is(false), isIgnored: is(true) };

/** Fields of all requests. No prompt is cut here: what is too long is an error, whatever `truncate` and `shift` say. */
export const unsupportedOllamaFields: UnsupportedFields = {
  truncate: nothingIsCut,
  shift: nothingIsCut,
  template: { why: "is the template of the model itself here; leave it out, or send 'raw'", isNeutral: is("") },
  context: {
    why: "holds tokens of one model server, and none are kept here; send the conversation to /api/chat",
    isNeutral: isEmptyList,
  },
  _debug_render_only: { why: "asks for the prompt, and models here answer it", isNeutral: is(false) },
};

/** The same of `options`. Ollama's default of `repeat_last_n` is 64. */
export const unsupportedOllamaOptions: UnsupportedFields = {
  repeat_last_n: { why: "can only be 64 here: not every model server knows it", isNeutral: is(64) },
};
