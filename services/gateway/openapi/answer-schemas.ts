import { z } from "zod";
import { finishReasons, tokenLogprobs } from "#shared/protocol/answer-events.ts";
import { model } from "#shared/protocol/model.ts";
import { reasoningEffort } from "#shared/protocol/job-bodies.ts";
import { chatCall } from "../chats/custom-tools.ts";
import * as requests from "../apis/responses/response-schema.ts";
import { count, event } from "./schema-parts.ts";

// The answers of the public API. The document has each export by its name. `fieldMeanings` has what is not described here.

const nothing = (why: string) => z.null().describe(`Always null: ${why}.`);
const refusal = nothing("a refusal is text like any other here");
const answeringModel = z.string().describe("The model that answered.");
const textFinishReason = z.enum(finishReasons).exclude(["tool_calls"]);
const lastOnly = "The reason for its end, in its last chunk; null before.";

/** The log probability of a token, and the likeliest alternatives to it. */
const likeliest = "The tokens that were likeliest in its place: as many as `top_logprobs` asked for.";
const likelyToken = tokenLogprobs.element.omit({ top_logprobs: true }).strip();
export const tokenLogprob = likelyToken.extend({ top_logprobs: z.array(likelyToken).describe(likeliest) });

const chatLogprobs = z
  .object({ content: z.array(tokenLogprob).describe("One entry for each token of the text."), refusal })
  .nullable();

export const tokenUsage = z.object({
  prompt_tokens: count,
  completion_tokens: count,
  total_tokens: count,
  prompt_tokens_details: z.object({ cached_tokens: count }).optional(),
  completion_tokens_details: z.object({ reasoning_tokens: count }).optional(),
});

/** The usage of a request whose answer is no text. */
const promptUsage = tokenUsage.pick({ prompt_tokens: true, total_tokens: true });
const streamedUsage = tokenUsage
  .nullish()
  .describe("Only with `stream_options.include_usage`: null in every chunk but the last, which has it and no choices.");
const ofChunks = "One choice a chunk; none in the chunk of the usage.";

const answer = { id: z.string(), created: count, model: answeringModel };

export const chatCompletion = z.object({
  ...answer,
  object: z.literal("chat.completion"),
  choices: z.array(
    z.object({
      index: count,
      message: z.object({
        role: z.literal("assistant"),
        content: z.string().nullable().describe("The text; null where the model said nothing but calls tools."),
        refusal,
        reasoning_content: z.string().optional(),
        reasoning: z.string().optional(),
        tool_calls: z.array(chatCall).optional(),
      }),
      logprobs: chatLogprobs,
      finish_reason: z.enum(finishReasons),
    }),
  ),
  usage: tokenUsage,
});

const atItsBeginning = "Once, at the call's beginning.";
const calledInPieces = z.object({
  index: count.describe("The number of the call in the answer, from 0."),
  id: z.string().optional().describe(atItsBeginning),
  type: z.enum(["function", "custom"]).optional().describe(atItsBeginning),
  function: z
    .object({
      name: z.string().optional().describe(atItsBeginning),
      arguments: z.string().describe("The next piece of the arguments: all of them together are one JSON text."),
    })
    .optional()
    .describe("Of a function."),
  custom: z
    .object({ name: z.string().optional().describe(atItsBeginning), input: z.string() })
    .optional()
    .describe("Of a custom tool. Its `input` is empty at its beginning, and whole in one later chunk."),
});

const chatDelta = z.object({
  role: z.literal("assistant").optional().describe("The speaker, in the first chunk of a choice."),
  content: z.string().optional().describe("The next piece of the text."),
  refusal: refusal.optional(),
  reasoning_content: z.string().optional(),
  reasoning: z.string().optional(),
  tool_calls: z.array(calledInPieces).optional().describe("The next piece of a call."),
});
const chatPiece = z.object({
  index: count,
  delta: chatDelta.describe("The next piece; empty in the chunk that has the reason for the end."),
  logprobs: chatLogprobs,
  finish_reason: z.enum(finishReasons).nullable().describe(lastOnly),
});

export const chatCompletionChunk = z.object({
  ...answer,
  object: z.literal("chat.completion.chunk"),
  choices: z.array(chatPiece).describe(ofChunks),
  usage: streamedUsage,
});

/** The log probabilities of a text's tokens, in parallel lists. */
export const textLogprobs = z.object({
  tokens: z.array(z.string()),
  token_logprobs: z.array(z.number()),
  top_logprobs: z
    .array(z.record(z.string(), z.number()))
    .describe("For each of them the tokens that were likeliest in its place, and how likely."),
  text_offset: z.array(count),
});

const textChoice = z.object({
  text: z.string().describe("The text that follows the prompt; with `echo` behind the prompt itself."),
  index: count,
  logprobs: textLogprobs.nullable(),
  finish_reason: textFinishReason,
});

export const textCompletion = z.object({
  ...answer,
  object: z.literal("text_completion"),
  choices: z.array(textChoice),
  usage: tokenUsage,
});

const textPiece = textChoice.extend({
  text: z.string().describe("The next piece of the text."),
  finish_reason: textFinishReason.nullable().describe(lastOnly),
});

export const textCompletionChunk = textCompletion.extend({
  choices: z.array(textPiece).describe(ofChunks),
  usage: streamedUsage,
});

export const embedding = z.object({
  object: z.literal("embedding"),
  index: count.describe("The number of the text, from 0."),
  embedding: z
    .union([z.array(z.number()), z.string()])
    .describe("The vector: numbers, or with `base64` its 32-bit floats, little-endian, as base64."),
});

export const embeddingList = z.object({
  object: z.literal("list"),
  data: z.array(embedding).describe("One vector for each text, in the order of the texts."),
  model: answeringModel,
  usage: promptUsage,
});

const rankedDocument = z.object({
  index: count.describe("The number of the document in the request, from 0."),
  relevance_score: z.number().describe("The relevance: a higher score is more relevant."),
  document: z.object({ text: z.string() }).optional().describe("The document, with `return_documents` only."),
});

export const ranking = z.object({
  id: z.string().describe("The id of this answer."),
  object: z.literal("list"),
  results: z.array(rankedDocument).describe("The documents, the most relevant first: `top_n` of them, or all."),
  model: answeringModel,
  usage: promptUsage,
});

const scoredDocument = z.object({
  index: count.describe("The number of the text in `text_2`, from 0."),
  object: z.literal("score"),
  score: z.number().describe("The relevance: a higher score is more relevant."),
});

export const scoreList = z.object({
  id: z.string().describe("The id of this answer."),
  object: z.literal("list"),
  created: z.int().describe("The time of the answer, in seconds since 1970."),
  data: z.array(scoredDocument).describe("One score for each text of `text_2`, in their order."),
  model: answeringModel,
  usage: promptUsage,
});

const judgement = z.looseObject({ flagged: z.boolean().describe("True if the text is harmful.") });
export const moderationList = z.looseObject({
  results: z.array(judgement).describe("A judgement of each text, in their order."),
});

export const tokenList = z.object({
  count: count.describe("The number of the tokens."),
  max_model_len: count.describe("The model's window, in tokens."),
  tokens: z.array(count).describe("The ids of the tokens."),
  token_strs: z.array(z.string()).nullable().describe("The tokens as text, with `return_token_strs`."),
});

export const detokenizedText = z.object({ prompt: z.string().describe("The text.") });

export const transcription = z
  .object({
    text: z.string().describe("All that was said."),
    language: z.string().optional().describe("The language, with `verbose_json`."),
    duration: z.union([z.number(), z.string()]).optional().describe("The length of the recording in seconds."),
    segments: z.array(z.looseObject({})).optional().describe("The parts and their times, with `verbose_json`."),
    words: z.array(z.looseObject({})).optional().describe("The words and their times, where they were asked for."),
    usage: z.looseObject({}).optional().describe("What the server counted: seconds, or tokens."),
  })
  .describe("The text as the model's server tells it. `text`, `srt` and `vtt` come as a plain text instead.");

const transcriptUsage = z.object({
  type: z.literal("tokens"),
  input_tokens: count.describe("The tokens of the recording."),
  output_tokens: count.describe("The tokens of the text."),
  total_tokens: count,
});

export const transcriptionEvent = z.discriminatedUnion("type", [
  z.object({ type: z.literal("transcript.text.delta"), delta: z.string().describe("The next piece of the text.") }),
  z.object({
    type: z.literal("transcript.text.done"),
    text: z.string().describe("All of the text."),
    usage: transcriptUsage.optional().describe("The tokens, where the server tells them."),
  }),
]);

export const speechEvent = z.discriminatedUnion("type", [
  z.object({ type: z.literal("speech.audio.delta"), audio: z.string().describe("The next piece, as base64.") }),
  z.object({ type: z.literal("speech.audio.done"), usage: transcriptUsage.optional() }),
]);

const madeImage = z.object({
  b64_json: z.string().optional().describe("The image, as base64."),
  url: z.string().optional().describe("Its address at the model's server, which clients may not reach."),
  revised_prompt: z.string().optional().describe("The prompt as the server changed it."),
});

export const imageList = z.object({
  created: count.describe("The time of the answer, in seconds since 1970."),
  data: z.array(madeImage).describe("The images."),
});

export const modelList = z.object({
  object: z.literal("list"),
  data: z.array(model).describe("The models that the key may use, by id; empty where none is installed."),
});

export const health = z.object({
  status: z.literal("ok").describe("Always `ok`: a process that does not run says nothing."),
});

export const readiness = z.object({
  ready: z.boolean(),
  checks: z.object({ serving: z.boolean(), broker: z.boolean(), keys: z.boolean() }),
  reasons: z.array(z.string()),
});

/** The error body of every refusal and every failure, as an answer and inside a stream. */
export const error = z.object({
  error: z.object({
    message: z.string().describe("The error and its remedy, for a person."),
    type: z.string().describe("The kind of error, as OpenAI has them; of a limit, which one it is."),
    param: z.string().nullable(),
    code: z.string().nullable(),
  }),
});

// The Responses API.

const itemId = z.string().describe("The id of the item.");
const itemStatus = z.enum(["in_progress", "completed", "incomplete"]);

/** In this API a token always has its `bytes`. */
const responseToken = likelyToken.extend({ bytes: z.array(z.int()) });
export const responseLogprob = responseToken.extend({ top_logprobs: z.array(responseToken).describe(likeliest) });
const responseLogprobs = z.array(responseLogprob);

const outputText = z.object({
  type: z.literal("output_text"),
  text: z.string(),
  annotations: z.array(z.never()),
  logprobs: responseLogprobs,
});
const reasoningText = z.object({ type: z.literal("reasoning_text"), text: z.string() });
const summaryText = z.object({ type: z.literal("summary_text"), text: z.string() });

export const outputMessage = z.object({
  id: itemId,
  type: z.literal("message"),
  role: z.literal("assistant"),
  status: itemStatus,
  content: z.array(outputText),
});

export const outputReasoning = z.object({
  id: itemId,
  type: z.literal("reasoning"),
  status: itemStatus,
  summary: z.array(summaryText).describe("The thoughts, as one part, where a summary was asked for."),
  content: z.array(reasoningText).optional().describe("The thoughts; absent where a summary was asked for."),
});

export const outputFunctionCall = z.object({
  id: itemId,
  type: z.literal("function_call"),
  status: itemStatus,
  call_id: z.string(),
  namespace: z.string().optional(),
  name: z.string(),
  arguments: z.string(),
});

export const outputCustomCall = outputFunctionCall.omit({ arguments: true }).extend({
  type: z.literal("custom_tool_call"),
  input: z.string().describe("The text that the model gave the tool. The model wrote it: check it."),
});

export const outputItem = z.discriminatedUnion("type", [
  outputMessage,
  outputReasoning,
  outputFunctionCall,
  outputCustomCall,
]);

const asRequested = "As the request said.";
const { functionTool, customTool, namespaceTool, outerTextFormat } = requests;
const requestedTool = z.discriminatedUnion("type", [functionTool, customTool, namespaceTool]);
const responseUsage = z.object({
  input_tokens: count,
  input_tokens_details: z.object({ cached_tokens: count, cache_write_tokens: z.literal(0) }),
  output_tokens: count,
  output_tokens_details: z.object({ reasoning_tokens: count }),
  total_tokens: count,
});

const asSampled = "As it was requested, else as the model's runtime reports its own; null where it reports none.";
const noPenalty = z.literal(0).describe("Always 0: this API sends no penalty to the runtime.");

/** A response: complete, or its present state in the middle of a stream. */
export const response = z.object({
  id: z.string().describe("The id of this response, the same in all events of a stream."),
  object: z.literal("response"),
  created_at: count,
  model: answeringModel,
  status: itemStatus.describe("The state of the item: whole, cut short, or still being made."),
  incomplete_details: z.object({ reason: z.enum(["max_output_tokens", "content_filter"]) }).nullable(),
  error: nothing("what fails is told as an error in place of a response"),
  output: z.array(outputItem).describe("The acts of the model in their order: thoughts, texts and calls of functions."),
  usage: responseUsage.nullable().describe("The tokens that the request used; null until they are known."),
  instructions: z.string().nullable().describe(asRequested),
  max_output_tokens: z.int().nullable().describe(asRequested),
  metadata: z.record(z.string(), z.string()),
  parallel_tool_calls: z.boolean().describe(asRequested),
  reasoning: z
    .object({ effort: reasoningEffort.nullable(), summary: z.enum(["auto", "concise", "detailed"]).nullable() })
    .describe(asRequested),
  temperature: z.number().nullable().describe(asSampled),
  text: z.object({ format: outerTextFormat.describe(asRequested) }).describe("The requested form of the text."),
  tool_choice: requests.responseToolChoice.describe(asRequested),
  tools: z.array(requestedTool).describe(asRequested),
  top_logprobs: z.int().describe(asRequested),
  top_p: z.number().nullable().describe(asSampled),
  access_programs: nothing("there are none here"),
  completed_at: z.int().nullable().describe("The time of its end, in seconds since 1970; null unless it is complete."),
  frequency_penalty: noPenalty,
  presence_penalty: noPenalty,
  max_tool_calls: nothing("the client runs the tools"),
  prompt_cache_key: nothing("runtimes find what they have cached by the prompt itself"),
  safety_identifier: nothing("no user is judged here"),
  service_tier: z.literal("default").describe("Always `default`: there is one tier."),
  background: z.literal(false),
  previous_response_id: z.string().nullable().describe(asRequested),
  conversation: z
    .object({ id: z.string().describe("The conversation's id.") })
    .nullable()
    .describe("The conversation that it belongs to; null without one."),
  store: z
    .boolean()
    .describe(
      "True if the response is stored. Of a stream, the last event says so for good: it is false there if the response was too large, the store was away, or the site had no room for more.",
    ),
  truncation: z.literal("disabled").describe("Always `disabled`: no input is cut."),
});

export const deletedResponse = z.object({
  id: z.string().describe("The response's id."),
  object: z.literal("response"),
  deleted: z.literal(true).describe("Always true: a response that is not there is an error."),
});

export const conversation = z.object({
  id: z.string().describe("The conversation's id, for `conversation` of a response."),
  object: z.literal("conversation"),
  created_at: z.int().describe("The time at which it was begun, in seconds since 1970."),
  metadata: z.record(z.string(), z.string()).describe("As it was begun with."),
});
export const deletedConversation = z.object({
  id: z.string().describe("The conversation's id."),
  object: z.literal("conversation.deleted"),
  deleted: z.literal(true).describe("Always true: a conversation that is not there is an error."),
});
export const responseTokenCount = z.object({
  object: z.literal("response.input_tokens"),
  input_tokens: count.describe("The tokens of the prompt, with the stored turns before it."),
});
export const responseItemList = z.object({
  object: z.literal("list"),
  data: z.array(requests.inputItem).describe("The items, each with its id."),
  first_id: z.string().nullable().describe("The id of the first item; null without any."),
  last_id: z.string().nullable().describe("The id of the last item, for `after` of the next page; null without any."),
  has_more: z.boolean().describe("True if more items follow the last one."),
});

const inStream = { sequence_number: count };
const ofItem = { ...inStream, output_index: count };
const ofPart = { ...ofItem, item_id: z.string() };
const inPart = { ...ofPart, content_index: z.literal(0) };
const ofSummary = { ...ofPart, summary_index: z.literal(0) };
const part = z.discriminatedUnion("type", [outputText, reasoningText]);
const ofResponse = { ...inStream, response: response.describe("The response as it stands.") };
const anItem = { ...ofItem, item: outputItem.describe("The item as it stands.") };
const delta = z.string().describe("The next piece.");

export const responseEvent = z.discriminatedUnion("type", [
  event("response.created", ofResponse),
  event("response.in_progress", ofResponse),
  event("response.output_item.added", anItem),
  event("response.content_part.added", { ...inPart, part }),
  event("response.output_text.delta", { ...inPart, delta, logprobs: responseLogprobs }),
  event("response.output_text.done", { ...inPart, text: z.string(), logprobs: responseLogprobs }),
  event("response.reasoning_text.delta", { ...inPart, delta }),
  event("response.reasoning_text.done", { ...inPart, text: z.string() }),
  event("response.reasoning_summary_part.added", { ...ofSummary, part: summaryText }),
  event("response.reasoning_summary_text.delta", { ...ofSummary, delta }),
  event("response.reasoning_summary_text.done", { ...ofSummary, text: z.string() }),
  event("response.reasoning_summary_part.done", { ...ofSummary, part: summaryText }),
  event("response.function_call_arguments.delta", { ...ofPart, delta }),
  event("response.function_call_arguments.done", { ...ofPart, name: z.string(), arguments: z.string() }),
  event("response.custom_tool_call_input.delta", { ...ofPart, delta }),
  event("response.custom_tool_call_input.done", {
    ...ofPart,
    input: z.string().describe("The text that the model gave the tool."),
  }),
  event("response.content_part.done", { ...inPart, part }),
  event("response.output_item.done", anItem),
  event("error", { ...inStream, ...error.shape, ...error.shape.error.omit({ type: true }).shape }),
  event("response.completed", ofResponse),
  event("response.incomplete", ofResponse),
]);
