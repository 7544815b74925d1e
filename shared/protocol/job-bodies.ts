import { z } from "zod";
import { choicesMax } from "./answer-events.ts";
import type { JsonPath } from "./frame-payload.ts";

/**
 * Returns the paths of the fields that a schema does not know: those of the parsed value that the schema's output
 * lacks. The schema must leave out unknown fields, as `z.object` does, and must not rename known ones.
 */
export function unknownFields(value: unknown, output: unknown, path: JsonPath = []): JsonPath[] {
  // A value without a schema of its own, such as a JSON schema, is passed on as it is.
  if (value === output || typeof value !== "object" || value === null) return [];
  const known = Object(output) as Readonly<Record<string, unknown>>;
  const isList = Array.isArray(value);
  const unknown: JsonPath[] = [];
  for (const [field, inner] of Object.entries(value)) {
    const isKnown = isList || Object.hasOwn(known, field);
    if (isKnown && inner === known[field]) continue;
    const place = [...path, isList ? Number(field) : field];
    if (isKnown) unknown.push(...unknownFields(inner, known[field], place));
    else unknown.push(place);
  }
  return unknown;
}

/**
 * The body of a `chat` job: a chat request in the form between gateway and agent, with OpenAI's names. The gateway has
 * normalised what OpenAI allows in several forms (`developer`, `max_completion_tokens`, a single `stop`). The schemas of
 * the outer APIs are made of these. They leave out unknown fields; an agent refuses a body that has one (`readBody`), so
 * that an older agent never drops a field of a newer gateway.
 */

export const textPart = z.object({ type: z.literal("text"), text: z.string() });
/** Runtimes would fetch another URL, and could be led into a private network. */
const sentImage = z.string().regex(/^data:image\//i, "must be a data URL of an image");
export const imagePart = z.object({
  type: z.literal("image_url"),
  image_url: z.object({ url: sentImage, detail: z.enum(["auto", "low", "high"]).optional() }),
});

export const textContent = z.union([z.string(), z.array(textPart).min(1)]);
export const userContent = z.union([z.string(), z.array(z.discriminatedUnion("type", [textPart, imagePart])).min(1)]);

export const toolCall = z.object({
  id: z.string().min(1).describe("The id of this call; the tool's message names it."),
  type: z.literal("function"),
  function: z.object({ name: z.string().min(1), arguments: z.string() }),
});

const speaker = z.string().optional().describe("A name for whoever speaks, for models that tell several apart.");

export const systemMessage = z.object({
  role: z.literal("system"),
  content: textContent,
  name: speaker,
});
export const userMessage = z.object({
  role: z.literal("user"),
  content: userContent,
  name: speaker,
});
export const assistantMessage = z.object({
  role: z.literal("assistant"),
  content: textContent.nullish(),
  reasoning_content: z.string().nullish(),
  tool_calls: z.array(toolCall).min(1).optional(),
  name: speaker,
});
export const toolMessage = z.object({
  role: z.literal("tool"),
  content: userContent,
  tool_call_id: z.string().min(1),
});

export const chatMessage = z.discriminatedUnion("role", [systemMessage, userMessage, assistantMessage, toolMessage]);
export type ChatMessage = z.infer<typeof chatMessage>;
export type UserMessage = Extract<ChatMessage, { role: "user" }>;
export type UserPart = Exclude<UserMessage["content"], string>[number];
export type TextPart = z.infer<typeof textPart>;
export type AssistantMessage = Extract<ChatMessage, { role: "assistant" }>;

/** The tool names that every runtime and template accepts. The gateway renames other tools and maps their names back. */
export const toolNameCharactersMax = 64;
export const toolNamePattern = /^[a-zA-Z0-9_-]{1,64}$/;

export const toolDefinition = z.object({
  type: z.literal("function"),
  function: z.object({
    name: z.string().regex(toolNamePattern, "must be 1 to 64 letters, digits, underscores or hyphens"),
    description: z.string().optional(),
    parameters: z.record(z.string(), z.unknown()).optional(),
    strict: z.boolean().nullish(),
  }),
});
export type ToolDefinition = z.infer<typeof toolDefinition>;

export const toolChoice = z.union([
  z.enum(["auto", "none", "required"]),
  z.object({ type: z.literal("function"), function: z.object({ name: z.string().min(1) }) }),
]);

export const responseFormat = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text") }),
  z.object({ type: z.literal("json_object") }),
  z.object({
    type: z.literal("json_schema"),
    json_schema: z.object({
      name: z.string().min(1).max(64).describe("A name for the schema."),
      description: z.string().optional(),
      schema: z.record(z.string(), z.unknown()).optional(),
      strict: z.boolean().nullish(),
    }),
  }),
]);

/** Keywords of a schema that bound numbers. The runtime of GGUF files leaves them out of its grammars. */
export const numberBounds: readonly string[] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];

export const reasoningEffort = z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]);

/** OpenAI allows 128. Coding agents with several tool servers send some hundreds. */
export const toolsMax = 512;
/** OpenAI allows four. Code completion clients send a dozen, and every supported runtime accepts them. */
export const stopsMax = 16;
export const stopText = z.string().min(1).max(1_024);

/** Bounds a grammar, a regular expression or one choice. Runtimes compile them. */
export const grammarCharactersMax = 262_144;
const grammarText = z.string().min(1).max(grammarCharactersMax);

/** A rule that the whole answer has to keep to, in vLLM's form. */
export const structuredOutputs = z.union([
  z.strictObject({ regex: grammarText }),
  z.strictObject({ choice: z.array(grammarText).min(1).max(1_024) }),
]);

/** Arguments of a chat template: few and plain, since templates only compare them. */
const templateArguments = z.record(
  z.string().regex(/^[A-Za-z_]\w{0,63}$/, "the name of an argument has at most 64 letters, digits or underscores"),
  z.union([z.boolean(), z.number(), z.string().max(1_024)]),
);

/** The fields of chats and texts alike that say how tokens are chosen. */
const sampling = {
  max_tokens: z.int().min(1).optional(),
  temperature: z.number().min(0).max(2).optional(),
  top_p: z.number().min(0).max(1).optional(),
  frequency_penalty: z.number().min(-2).max(2).optional(),
  presence_penalty: z.number().min(-2).max(2).optional(),
  seed: z.int().optional(),
  stop: z.array(stopText).min(1).max(stopsMax).optional(),
  /** Number of likeliest tokens to choose from; 0 is all of them. */
  top_k: z.int().min(0).optional(),
  min_p: z.number().min(0).max(1).optional(),
  typical_p: z.number().min(0).max(1).optional(),
  repeat_penalty: z.number().min(0.01).max(10).optional(),
  stop_token_ids: z.array(z.int().min(0)).max(stopsMax).optional(),
  ignore_eos: z.boolean().optional(),
  min_tokens: z.int().min(0).optional(),
  n: z.int().min(1).max(choicesMax).optional(),
};
const logitBias = z.record(z.string(), z.number().min(-100).max(100)).optional();

/** All fields of a chat request that change the answer, except the model. */
export const chatBody = z.object({
  messages: z.array(chatMessage).min(1),
  tools: z.array(toolDefinition).min(1).max(toolsMax).optional(),
  tool_choice: toolChoice.optional(),
  parallel_tool_calls: z.boolean().optional(),
  ...sampling,
  logprobs: z.boolean().optional(),
  top_logprobs: z.int().min(0).max(20).optional(),
  logit_bias: logitBias,
  response_format: responseFormat.optional(),
  reasoning_effort: reasoningEffort.optional(),
  chat_template_kwargs: templateArguments.optional(),
  /** Rules of a grammar in the form of llama.cpp (GBNF). */
  grammar: grammarText.optional(),
  structured_outputs: structuredOutputs.optional(),
});
export type ChatBody = z.infer<typeof chatBody>;

/** Returns the text of a message's content: its text parts joined. */
export function contentText(content: ChatMessage["content"]): string {
  if (content === null || content === undefined) return "";
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** Bounds the answers to one request: its prompts times `n`. */
export const completionsMax = choicesMax;
/** Bounds the alternative tokens that a legacy completion reports for each token. */
export const completionLogprobsMax = 5;

/**
 * The body of a `complete` job: prompts that are continued without a chat template. The agent asks its runtime for one
 * answer to one prompt at a time. The answers to the first prompt come first.
 */
export const completeBody = z.object({
  prompts: z.array(z.string()).min(1).max(completionsMax),
  /** The text that follows the answer. */
  suffix: z.string().min(1).optional(),
  /** True if each answer begins with its prompt. */
  echo: z.boolean().optional(),
  ...sampling,
  logit_bias: logitBias,
  /** Number of alternatives to report for each token. With 0 only the token's own logprob is reported. */
  logprobs: z.int().min(0).max(completionLogprobsMax).optional(),
});
export type CompleteBody = z.infer<typeof completeBody>;

/** One runtime request: one prompt that is continued once. */
export type TextToContinue = Omit<CompleteBody, "prompts" | "echo" | "n"> & { readonly prompt: string };

export const embedInputsMax = 2_048;
export const embedDimensionsMax = 65_536;

/**
 * The body of an `embed` job: the texts of an embeddings request. The job's shape decides between numbers and base64,
 * so that every runtime can serve both.
 */
export const embedBody = z.object({
  input: z.array(z.string().min(1)).min(1).max(embedInputsMax),
  dimensions: z.int().min(1).max(embedDimensionsMax).optional(),
});
export type EmbedBody = z.infer<typeof embedBody>;

/** Bounds the documents of one request to rerank. */
export const rerankDocumentsMax = 2_048;

/** The body of a `rerank` job: each document is scored by its relevance to the query. */
export const rankBody = z.object({
  query: z.string().min(1),
  documents: z.array(z.string().min(1)).min(1).max(rerankDocumentsMax),
});
export type RankBody = z.infer<typeof rankBody>;

export const manageActions = ["pull", "remove", "load", "unload"] as const;
export type ManageAction = (typeof manageActions)[number];

/** A request about a model of a machine. An owner who allows to pull also allows to stop a pull. */
export const manageRequests = [...manageActions, "stop"] as const;
export type ManageRequest = (typeof manageRequests)[number];

/** The body of a `manage` job: the action on the model that the job's head names. */
export const manageBody = z.object({ action: z.enum(manageRequests) });
export type ManageBody = z.infer<typeof manageBody>;

/** Progress of a `manage` job, one record each. The byte counts cover the current download, where the runtime reports them. */
export const manageProgress = z.object({
  status: z.string().max(500),
  completedBytes: z.int().nonnegative().optional(),
  totalBytes: z.int().nonnegative().optional(),
});
export type ManageProgress = z.infer<typeof manageProgress>;
