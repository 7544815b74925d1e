import { Fault } from "#shared/fault/fault.ts";
import { jsonIn } from "#shared/protocol/frame-payload.ts";
import type { Capabilities } from "#shared/protocol/model.ts";
import type { ChatBody, TextToContinue } from "#shared/protocol/job-bodies.ts";

/** Refuses a chat that needs a capability that the model lacks, whatever its runtime supports. */
export function refuseIncapable(chat: { model: string; capabilities: Capabilities; body: ChatBody }): void {
  const { model, capabilities, body } = chat;
  if (!capabilities.completion) {
    throw new Fault("unsupported_value", { message: `The model '${model}' does not support chat.`, param: "model" });
  }
  if (body.tools !== undefined && !capabilities.tools) {
    const message = `The model '${model}' does not support tools.`;
    throw new Fault("model_does_not_support_tools", { message, param: "tools" });
  }
  if (!capabilities.vision) {
    const image = firstImage(body);
    if (image !== undefined) {
      throw new Fault("unsupported_value", { message: `The model '${model}' does not accept images.`, param: image });
    }
  }
  const effort = body.reasoning_effort;
  if (effort !== undefined && effort !== "none" && !capabilities.thinking) {
    const message = `The model '${model}' has no thinking mode, so 'reasoning_effort' can only be 'none'.`;
    throw new Fault("unsupported_parameter", { message, param: "reasoning_effort" });
  }
}

/** Returns the path of the first image, undefined when there is none. */
export function firstImage({ messages }: ChatBody): string | undefined {
  for (const [at, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue;
    const part = content.findIndex(({ type }) => type === "image_url");
    if (part >= 0) return `messages[${at}].content[${part}]`;
  }
  return undefined;
}

type ChatField = keyof ChatBody;
type TextField = keyof TextToContinue;

/** The fields that every runtime honours in chats and completions, itself or through its adapter. */
const honouredByAll = [
  "max_tokens",
  "temperature",
  "top_p",
  "frequency_penalty",
  "presence_penalty",
  "seed",
  "stop",
] as const satisfies readonly (ChatField & TextField)[];

/** The fields that every runtime honours in chats beside these. */
const honouredInChats: readonly ChatField[] = ["tools", "tool_choice", "parallel_tool_calls", "reasoning_effort"];

/** Returns the fields of a chat that a runtime honours: the common fields, and its own fields. */
export function honouring(...beside: readonly ChatField[]): ReadonlySet<ChatField> {
  return new Set([...honouredByAll, ...honouredInChats, ...beside]);
}

/** Returns the fields of a completion that a runtime honours: the common fields, and its own fields. */
export function honouringInTexts(...beside: readonly TextField[]): ReadonlySet<TextField> {
  return new Set([...honouredByAll, ...beside]);
}

/** The sampling fields beyond OpenAI's, which each runtime knows some of. */
export const runtimeSampling = [
  "top_k",
  "min_p",
  "typical_p",
  "repeat_penalty",
  "stop_token_ids",
  "ignore_eos",
  "min_tokens",
] as const;
export type RuntimeSampling = (typeof runtimeSampling)[number];

/** The fields of chats and completions together. `logprobs` is a number in completions. */
type AnyFields = Partial<Omit<ChatBody, "logprobs">> & { readonly logprobs?: boolean | number | undefined };

/** For each field: returns true if its value requests no more than the default answer, which any runtime gives. */
const neutral: { readonly [Field in ChatField | TextField]?: (body: AnyFields) => boolean } = {
  n: (body) => body.n === 1,
  logprobs: (body) => body.logprobs === false,
  logit_bias: (body) => Object.keys(body.logit_bias ?? {}).length === 0,
  response_format: (body) => body.response_format?.type === "text",
  tool_choice: (body) => body.tool_choice === "auto",
  parallel_tool_calls: (body) => body.parallel_tool_calls === true,
  chat_template_kwargs: ({ chat_template_kwargs: args = {} }) =>
    Object.entries(args).every(([name, value]) => /^(enable_)?thinking$/.test(name) && value === true),
  top_k: (body) => body.top_k === 0,
  min_p: (body) => body.min_p === 0,
  typical_p: (body) => body.typical_p === 1,
  repeat_penalty: (body) => body.repeat_penalty === 1,
  stop_token_ids: (body) => body.stop_token_ids?.length === 0,
  ignore_eos: (body) => body.ignore_eos === false,
  min_tokens: (body) => body.min_tokens === 0,
};

/**
 * Refuses a chat or a completion with a field that the runtime does not honour, so that no field is dropped silently.
 * The list names the honoured fields, and not the unsupported ones. Every adapter therefore refuses a new field of the
 * protocol until its list has the field. `sampling` has a server's own names of the further fields that it honours.
 */
export function refuseUnsupported(
  body: ChatBody | TextToContinue,
  honoured: ReadonlySet<string>,
  sampling: Partial<Record<RuntimeSampling, string>> = {},
): void {
  for (const [field, value] of Object.entries(body) as [ChatField | TextField, unknown][]) {
    const isInput = field === "messages" || field === "prompt";
    if (isInput || value === undefined || honoured.has(field) || field in sampling || neutral[field]?.(body)) continue;
    const message = `The runtime of this model does not support '${field}' with this value.`;
    throw new Fault("unsupported_parameter", { message, param: field });
  }
}

/**
 * Returns the fault for an empty prompt. Only a model that begins all texts with a token of its own can answer an empty
 * prompt.
 */
export function nothingToContinue(): Fault {
  const message = "'prompt' must not be empty.";
  return new Fault("invalid_value", { message, param: "prompt" });
}

/**
 * Returns the tools without a choice, for servers that always leave it to the model. `none` is honoured by offering no
 * tools.
 */
export function modelsChoice({ tools, tool_choice: choice = "auto" }: Pick<ChatBody, "tools" | "tool_choice">): {
  readonly tools?: ChatBody["tools"];
} {
  if (choice === "auto") return { tools };
  if (choice === "none") return {};
  const message =
    "The runtime of this model leaves it to the model whether to call a tool: 'tool_choice' can be auto or none.";
  throw new Fault("unsupported_value", { message, param: "tool_choice" });
}

/** Returns the arguments of a call as an object; empty arguments are none. Anything but a JSON object is refused. */
export function argumentsOf(text: string, param: string): object {
  if (text.trim() === "") return {};
  const value = jsonIn(text);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw new Fault("invalid_value", { message: `'${param}' must be a JSON object, as a string.`, param });
}
