import { z } from "zod";
import { tokenLogprobs } from "#shared/protocol/answer-events.ts";
import { reasoningEffort } from "#shared/protocol/job-bodies.ts";
import { functionTool, namespaceTool, responseToolChoice, outerTextFormat } from "../api/responses/response-schema.ts";
import { answeringModel, errorAnswer } from "./answer-schemas.ts";

const nothing = (why: string) => z.null().describe(`Always null: ${why}.`);
const count = (what: string) => z.int().nonnegative().describe(what);

const itemId = z.string().describe("The id of the item.");
const itemStatus = z
  .enum(["in_progress", "completed", "incomplete"])
  .describe("How it stands; `incomplete` where the answer was cut short in it.");

/** In this API a token always has its `bytes`. */
const likelyToken = tokenLogprobs.element.omit({ top_logprobs: true }).extend({ bytes: z.array(z.int()) });
export const responseLogprob = likelyToken.extend({ top_logprobs: z.array(likelyToken) });
const responseLogprobs = z
  .array(responseLogprob)
  .describe("How likely each token was; empty unless `include` asked for it.");

const outputText = z.object({
  type: z.literal("output_text").describe("What the part is."),
  text: z.string().describe("The text."),
  annotations: z.array(z.never()).describe("Always empty: models here look nothing up."),
  logprobs: responseLogprobs,
});
const reasoningText = z.object({
  type: z.literal("reasoning_text").describe("What the part is."),
  text: z.string().describe("The thoughts."),
});

const summaryText = z.object({
  type: z.literal("summary_text").describe("What the part is."),
  text: z.string().describe("The thoughts."),
});

/** An output item: text of the model. */
export const outputMessage = z.object({
  id: itemId,
  type: z.literal("message").describe("What the item is."),
  role: z.literal("assistant").describe("Who speaks."),
  status: itemStatus,
  content: z.array(outputText).describe("The text, as one part."),
});

/** An output item: reasoning of the model. */
export const outputReasoning = z.object({
  id: itemId,
  type: z.literal("reasoning").describe("What the item is."),
  status: itemStatus,
  summary: z
    .array(summaryText)
    .describe("The thoughts, as one part, where a summary was asked for. Nothing is left out."),
  content: z
    .array(reasoningText)
    .optional()
    .describe("The thoughts, as one part; absent where a summary was asked for."),
});

/** An output item: a function call by the model. */
export const outputCall = z.object({
  id: itemId,
  type: z.literal("function_call").describe("What the item is."),
  status: itemStatus,
  call_id: z.string().describe("The id of the call; its `function_call_output` names it."),
  namespace: z.string().optional().describe("The namespace that it stands in, if it does."),
  name: z.string().describe("The function's name."),
  arguments: z.string().describe("Its arguments, as a text of JSON. The model wrote it: check it."),
});

export const outputItem = z.discriminatedUnion("type", [outputMessage, outputReasoning, outputCall]);

const usage = z.object({
  input_tokens: count("The tokens of the prompt."),
  input_tokens_details: z
    .object({
      cached_tokens: count("How many of them the runtime still had from before, as far as it tells."),
      cache_write_tokens: z.literal(0).describe("Always 0: nothing is charged for keeping them."),
    })
    .describe("The same, looked at closely."),
  output_tokens: count("The tokens of the answer, thoughts included."),
  output_tokens_details: z
    .object({ reasoning_tokens: count("How many of them were thoughts, as far as the runtime tells.") })
    .describe("The same, looked at closely."),
  total_tokens: count("Both together."),
});

const repeated = (what: string) => `${what}, as the request said`;

/** A response: complete, or its present state in the middle of a stream. */
export const response = z.object({
  id: z.string().describe("The id of this response, the same in all events of a stream. It is not kept."),
  object: z.literal("response").describe("What this is."),
  created_at: z.int().nonnegative().describe("When the answer was begun, in seconds since 1970."),
  model: answeringModel,
  status: z
    .enum(["in_progress", "completed", "incomplete"])
    .describe("Whether it is whole, was cut short, or is still being made."),
  incomplete_details: z
    .object({
      reason: z
        .enum(["max_output_tokens", "content_filter"])
        .describe("The longest length was reached, or the runtime withheld the rest."),
    })
    .nullable()
    .describe("Why it was cut short; null where it was not."),
  error: nothing("what fails is told as an error in place of a response"),
  output: z.array(outputItem).describe("What the model did, in its order: thoughts, texts and calls of functions."),
  usage: usage.nullable().describe("What the request used; null until it is known."),
  instructions: z
    .string()
    .nullable()
    .describe(`${repeated("What the model was to go by")}.`),
  max_output_tokens: z
    .int()
    .nullable()
    .describe(`${repeated("The most tokens of the answer")}.`),
  metadata: z.record(z.string(), z.string()).describe(`${repeated("Your own notes")}; they are not kept.`),
  parallel_tool_calls: z.boolean().describe(`${repeated("Whether several functions may be called at once")}.`),
  reasoning: z
    .object({
      effort: reasoningEffort.nullable().describe(`${repeated("How much the model was to think")}.`),
      summary: z
        .enum(["auto", "concise", "detailed"])
        .nullable()
        .describe(`${repeated("Which summary of its thoughts was asked for")}.`),
    })
    .describe("How the model was to think."),
  temperature: z
    .number()
    .nullable()
    .describe(`${repeated("How freely the words were chosen")}.`),
  text: z.object({ format: outerTextFormat.describe("What form the text has.") }).describe("How the text was to be."),
  tool_choice: responseToolChoice.describe("Which of the tools might be called."),
  tools: z
    .array(z.discriminatedUnion("type", [functionTool, namespaceTool]))
    .describe("The functions that the model might call."),
  top_logprobs: z.int().describe(`${repeated("How many likely others are told beside each token")}.`),
  top_p: z
    .number()
    .nullable()
    .describe(`${repeated("Of how much of the likeliest words was chosen")}.`),
  access_programs: nothing("there are none here"),
  background: z.literal(false).describe("Always false: an answer ends with its client."),
  previous_response_id: nothing("no response is kept, so that none can be gone on from"),
  store: z.literal(false).describe("Always false: nothing is kept."),
  truncation: z.literal("disabled").describe("Always `disabled`: no input is cut."),
});

const number = count("Which event of the stream this is, from 0.");
const ofItem = {
  sequence_number: number,
  output_index: count("Which item of `output` this is of, from 0."),
};
const ofPart = { ...ofItem, item_id: itemId };
const inPart = { ...ofPart, content_index: z.literal(0).describe("Which part of the item this is of.") };
const ofSummary = { ...ofPart, summary_index: z.literal(0).describe("Which part of the summary this is of.") };
const summaryPart = summaryText.describe("The part as it stands.");
const part = z.discriminatedUnion("type", [outputText, reasoningText]).describe("The part as it stands.");
const delta = z.string().describe("The next piece.");

const named = <Name extends string, Fields extends z.ZodRawShape>(type: Name, fields: Fields) =>
  z.object({ type: z.literal(type).describe("What happened; the name of the event says the same."), ...fields });
const standing = { sequence_number: number, response: response.describe("The response as it stands.") };
const item = outputItem.describe("The item as it stands.");
const piece = { delta, logprobs: responseLogprobs };

/** One event of a streamed response. */
export const responseEvent = z.discriminatedUnion("type", [
  named("response.created", standing),
  named("response.in_progress", standing),
  named("response.output_item.added", { ...ofItem, item }),
  named("response.content_part.added", { ...inPart, part }),
  named("response.output_text.delta", { ...inPart, ...piece }),
  named("response.output_text.done", {
    ...inPart,
    text: z.string().describe("All of it."),
    logprobs: responseLogprobs,
  }),
  named("response.reasoning_text.delta", { ...inPart, delta }),
  named("response.reasoning_text.done", { ...inPart, text: z.string().describe("All of it.") }),
  named("response.reasoning_summary_part.added", { ...ofSummary, part: summaryPart }),
  named("response.reasoning_summary_text.delta", { ...ofSummary, delta }),
  named("response.reasoning_summary_text.done", { ...ofSummary, text: z.string().describe("All of it.") }),
  named("response.reasoning_summary_part.done", { ...ofSummary, part: summaryPart }),
  named("response.function_call_arguments.delta", { ...ofPart, delta }),
  named("response.function_call_arguments.done", {
    ...ofPart,
    name: z.string().describe("The function's name."),
    arguments: z.string().describe("All of them, as a text of JSON."),
  }),
  named("response.content_part.done", { ...inPart, part }),
  named("response.output_item.done", { ...ofItem, item }),
  named("error", {
    sequence_number: number,
    error: errorAnswer.shape.error,
    message: z.string().describe("What is wrong, once more for clients that look here."),
    param: z.string().nullable().describe("The part of the request that is at fault, once more."),
    code: z.string().nullable().describe("What is wrong, for a program, once more."),
  }),
  named("response.completed", standing),
  named("response.incomplete", standing),
]);
