import { z } from "zod";
import { reasoningEffort } from "#shared/protocol/job-bodies.ts";
import * as requests from "./response-schema.ts";
import { itemsPageDefault, itemsPageMax } from "./stored-endpoints.ts";
import { count, event, maybeText, nothing, text, textOrNull, typed } from "../answer-parts.ts";
import { answeringModel, error, likeliest, likelyToken } from "../openai-answers.ts";
import { type ApiDescription, get, post, remove } from "../description.ts";
import { conversationExamples, example, sample, user } from "../example-requests.ts";

/** In this API a token always has its `bytes`. */
const token = likelyToken.extend({ bytes: z.array(z.int()) });
const responseLogprob = token.extend({ top_logprobs: z.array(token).describe(likeliest) });
const logprobs = z.array(responseLogprob);
const outputText = typed("output_text", { text, annotations: z.array(z.never()), logprobs });
const reasoningText = typed("reasoning_text", { text });
const summaryText = typed("summary_text", { text });

const status = z.enum(["in_progress", "completed", "incomplete"]);
const item = { id: text, status };
const outputMessage = typed("message", { ...item, role: z.literal("assistant"), content: z.array(outputText) });
const thoughts = { summary: z.array(summaryText), content: z.array(reasoningText).optional() };
const outputReasoning = typed("reasoning", { ...item, ...thoughts });
const call = { ...item, call_id: text, namespace: maybeText, name: text };
const outputFunctionCall = typed("function_call", { ...call, arguments: text });
const outputCustomCall = typed("custom_tool_call", { ...call, input: text });
const outputItem = z.discriminatedUnion("type", [outputMessage, outputReasoning, outputFunctionCall, outputCustomCall]);

const { responseRequest, conversationRequest, conversationItemsRequest, inputItem, responseTool, responseToolChoice } =
  requests;
const { functionTool, customTool, namespaceTool, outerTextFormat } = requests;
const summaries = z.enum(["auto", "concise", "detailed"]);
const noPenalty = z.literal(0).describe("Always 0: this API sends no penalty to the runtime.");
const reasoning = z.object({ effort: reasoningEffort.nullable(), summary: summaries.nullable() });
const ownTool = z.discriminatedUnion("type", [functionTool, customTool, namespaceTool]);
const usage = z.object({
  input_tokens: count,
  input_tokens_details: z.object({ cached_tokens: count, cache_write_tokens: z.literal(0) }),
  output_tokens: count,
  output_tokens_details: z.object({ reasoning_tokens: count }),
  total_tokens: count,
});

/** A response: complete, or its present state in the middle of a stream. */
const response = z.object({
  id: text,
  object: z.literal("response"),
  created_at: count,
  model: answeringModel,
  status,
  incomplete_details: z.object({ reason: z.enum(["max_output_tokens", "content_filter"]) }).nullable(),
  error: nothing("what fails is told as an error in place of a response"),
  output: z.array(outputItem),
  usage: usage.nullable(),
  instructions: textOrNull,
  max_output_tokens: z.int().nullable(),
  metadata: z.record(text, text),
  parallel_tool_calls: z.boolean(),
  reasoning,
  temperature: z.number().nullable(),
  text: z.object({ format: outerTextFormat.describe("As the request said.") }),
  tool_choice: responseToolChoice.describe("As the request said."),
  tools: z.array(ownTool),
  top_logprobs: z.int(),
  top_p: z.number().nullable(),
  access_programs: nothing("there are none here"),
  completed_at: z.int().nullable(),
  frequency_penalty: noPenalty,
  presence_penalty: noPenalty,
  max_tool_calls: nothing("the client runs the tools"),
  prompt_cache_key: nothing("runtimes find what they have cached by the prompt itself"),
  safety_identifier: nothing("no user is judged here"),
  service_tier: z.literal("default"),
  background: z.literal(false),
  previous_response_id: textOrNull,
  conversation: z.object({ id: text }).nullable(),
  store: z.boolean(),
  truncation: z.literal("disabled"),
});

const deleted = (object: string) => z.object({ id: text, object: z.literal(object), deleted: z.literal(true) });
const deletedResponse = deleted("response");
const deletedConversation = deleted("conversation.deleted");
const begun = { created_at: z.int(), metadata: z.record(text, text) };
const conversation = z.object({ id: text, object: z.literal("conversation"), ...begun });
const responseTokenCount = z.object({ object: z.literal("response.input_tokens"), input_tokens: count });
const pageIds = { first_id: textOrNull, last_id: textOrNull, has_more: z.boolean() };
const responseItemList = z.object({ object: z.literal("list"), data: z.array(inputItem), ...pageIds });

const inStream = { sequence_number: count };
const ofItem = { ...inStream, output_index: count };
const ofPart = { ...ofItem, item_id: text };
const inPart = { ...ofPart, content_index: z.literal(0) };
const ofSummary = { ...ofPart, summary_index: z.literal(0) };
const part = z.discriminatedUnion("type", [outputText, reasoningText]);
const ofResponse = { ...inStream, response: response.describe("The response as it stands.") };
const anItem = { ...ofItem, item: outputItem.describe("The item as it stands.") };
const delta = text.describe("The next piece.");
const responseEvent = z.discriminatedUnion("type", [
  event("response.created", ofResponse),
  event("response.in_progress", ofResponse),
  event("response.output_item.added", anItem),
  event("response.content_part.added", { ...inPart, part }),
  event("response.output_text.delta", { ...inPart, delta, logprobs }),
  event("response.output_text.done", { ...inPart, text, logprobs }),
  event("response.reasoning_text.delta", { ...inPart, delta }),
  event("response.reasoning_text.done", { ...inPart, text }),
  event("response.reasoning_summary_part.added", { ...ofSummary, part: summaryText }),
  event("response.reasoning_summary_text.delta", { ...ofSummary, delta }),
  event("response.reasoning_summary_text.done", { ...ofSummary, text }),
  event("response.reasoning_summary_part.done", { ...ofSummary, part: summaryText }),
  event("response.function_call_arguments.delta", { ...ofPart, delta }),
  event("response.function_call_arguments.done", { ...ofPart, name: text, arguments: text }),
  event("response.custom_tool_call_input.delta", { ...ofPart, delta }),
  event("response.custom_tool_call_input.done", { ...ofPart, input: text }),
  event("response.content_part.done", { ...inPart, part }),
  event("response.output_item.done", anItem),
  event("error", { ...inStream, ...error.shape, ...error.shape.error.omit({ type: true }).shape }),
  event("response.completed", ofResponse),
  event("response.incomplete", ofResponse),
]);

const ask = (content: unknown, ...turns: readonly object[]) => ({ input: [user(content), ...turns] });
const examples = conversationExamples(ask, {
  tools: { tools: [{ type: "function", ...sample.weather }] },
  turns: [
    { type: "function_call", call_id: "call_1", ...sample.call },
    { type: "function_call_output", call_id: "call_1", output: sample.rain },
  ],
  shown: [
    { type: "input_text", text: sample.whatIsThis },
    { type: "input_image", image_url: sample.imageUrl },
  ],
  json: { text: { format: { type: "json_schema", ...sample.city } } },
});
const pirate = { input: sample.why, instructions: "Answer like a pirate." };
const ann = { items: [user("My name is Ann.")] };

const itemsQuery = z.object({
  limit: z.int().min(1).max(itemsPageMax).default(itemsPageDefault).describe("Items on a page."),
  order: z.enum(["asc", "desc"]).default("desc").describe("`asc` for the first item first."),
  after: text.optional().describe("The id of the item before the page."),
});

export const describeResponses: ApiDescription = {
  tag: "Responses",
  stream: "events",
  refusedAs: "stored",
  schemas: [
    { responseRequest, conversationRequest, conversationItemsRequest, inputItem, inputMessage: requests.messageItem },
    { inputReasoning: requests.reasoningItem, inputFunctionCall: requests.callItem },
    { inputCustomCall: requests.customCallItem, inputFunctionCallOutput: requests.callOutputItem },
    { responseTool, functionTool, customTool, namespaceTool, responseToolChoice, textFormat: outerTextFormat },
    { response, responseEvent, responseLogprob, responseTokenCount, responseItemList, deletedResponse },
    { outputMessage, outputItem, outputReasoning, outputFunctionCall, outputCustomCall },
    { conversation, deletedConversation },
  ],
  operations: [
    post("createResponse", "response", [responseRequest, response, responseEvent], {
      refuses: requests.unsupportedResponseFields,
      refusedAs: "chat",
      refusals: ["response_not_found"],
      examples: { ...examples, question: example("A question, answered whole", pirate) },
    }),
    post("countResponseTokens", "response-count", [responseRequest, responseTokenCount], {
      headers: ["x-trunkline-estimate"],
      refusedAs: "count",
      refusals: ["response_not_found"],
    }),
    get("retrieveResponse", "/v1/responses/{id}", response, { refusals: ["unsupported_parameter"] }),
    remove("deleteResponse", "/v1/responses/{id}", deletedResponse),
    get("listResponseItems", "/v1/responses/{id}/input_items", responseItemList, {
      query: itemsQuery,
      refusals: ["invalid_value"],
    }),
    post("createConversation", "/v1/conversations", [conversationRequest, conversation], {
      refusals: ["insufficient_permissions", "insufficient_quota"],
      examples: { begun: { summary: "One that has begun", value: { ...ann, metadata: { topic: "names" } } } },
    }),
    get("retrieveConversation", "/v1/conversations/{id}", conversation),
    remove("deleteConversation", "/v1/conversations/{id}", deletedConversation),
    get("listConversationItems", "/v1/conversations/{id}/items", responseItemList, {
      query: itemsQuery,
      refusals: ["invalid_value"],
    }),
    post("createConversationItems", "/v1/conversations/{id}/items", [conversationItemsRequest, responseItemList], {
      refusals: ["insufficient_quota"],
      examples: { message: { summary: "A message", value: ann } },
    }),
    get("retrieveConversationItem", "/v1/conversations/{id}/items/{item}", inputItem),
    remove("deleteConversationItem", "/v1/conversations/{id}/items/{item}", conversation, {
      refusals: ["array_above_max_length", "insufficient_quota"],
    }),
  ],
};
