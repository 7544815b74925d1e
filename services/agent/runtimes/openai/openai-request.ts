import { Fault } from "#shared/fault/fault.ts";
import { type ChatBody, type ChatMessage, contentText, type TextToContinue } from "#shared/protocol/job-bodies.ts";
import { estimateTextTokens, estimateTokens } from "../context-overflow.ts";
import { refuseEmptyText, refuseUnsupported, refuseUnsupportedText } from "../refuse-unsupported.ts";
import type { OpenAiProfile, ServedModel } from "./openai-profile.ts";

interface ChatToRequest {
  readonly profile: OpenAiProfile;
  readonly model: ServedModel;
  readonly body: ChatBody;
  /** True if the model is known to think. */
  readonly thinks: boolean;
  readonly contextWindow: number;
  readonly cacheSalt?: string | undefined;
}

/**
 * Renders a chat for `/v1/chat/completions`, as a server of this profile takes it. Refuses fields that the server would
 * ignore. Fields that the client omitted stay unset, so that the model's own defaults apply.
 */
export function openAiChatRequest(chat: ChatToRequest): Readonly<Record<string, unknown>> {
  const { profile, model, body, thinks, contextWindow, cacheSalt } = chat;
  refuseUnsupported(body, profile.honoured);
  profile.refuse?.(body);
  refuseUnknownTokens({ profile, model, body });
  const { tools, tool_choice: toolChoice } = profile.tools(offeredTools(body), model);
  const format = body.response_format;
  return {
    model: model.name,
    messages: openAiMessages(profile, body.messages),
    stream: true,
    stream_options: { include_usage: true },
    tools,
    tool_choice: toolChoice,
    parallel_tool_calls: profile.takesParallelToolCalls && tools ? body.parallel_tool_calls : undefined,
    max_tokens: answerTokens({
      tokensMax: body.max_tokens,
      unset: profile.answerTokensUnset,
      refusesOverWindow: profile.refusesLimitsOverWindow ?? false,
      estimatedTokens: () => estimateTokens(body),
      contextWindow,
    }),
    ...sharedFields(body, { profile, cacheSalt }),
    n: profile.answersSeveral ? body.n : undefined,
    logprobs: body.logprobs || undefined,
    top_logprobs: body.logprobs ? body.top_logprobs : undefined,
    response_format: format === undefined || format.type === "text" ? undefined : profile.responseFormat(format),
    ...(body.reasoning_effort && profile.thinking(body.reasoning_effort, thinks)),
    ...profile.always,
    ...prefill(profile, body),
  };
}

/**
 * Returns the beginning of the answer from the last message, if the server may repeat it before it continues. Returns
 * an empty string for a server that is told to continue.
 */
export function echoedText(profile: OpenAiProfile, body: ChatBody): string {
  return profile.prefill === "as-the-template" ? prefilledText(body) : "";
}

function prefilledText({ messages }: ChatBody): string {
  const last = messages.at(-1);
  return last?.role === "assistant" && last.tool_calls === undefined ? contentText(last.content) : "";
}

function prefill(profile: OpenAiProfile, body: ChatBody): Readonly<Record<string, boolean>> {
  const last = body.messages.at(-1);
  if (last?.role !== "assistant") return {};
  switch (profile.prefill) {
    case "continues":
      return { continue_final_message: true, add_generation_prompt: false };
    case "as-the-template":
      return {};
    case "never":
      throw new Fault("unsupported_value", {
        message: "The runtime of this model cannot go on from a last message with the role 'assistant'.",
        param: `messages[${body.messages.length - 1}]`,
      });
  }
}

/** Returns the tools and their choice. A choice without tools has no meaning, and a server may refuse it. */
function offeredTools({ tools, tool_choice: choice }: ChatBody): Pick<ChatBody, "tools" | "tool_choice"> {
  return tools === undefined ? {} : { tools, ...(choice !== undefined && { tool_choice: choice }) };
}

type AssistantMessage = Extract<ChatMessage, { role: "assistant" }>;
type Call = NonNullable<AssistantMessage["tool_calls"]>[number];

/** Renders the messages for a server of this profile: text as one string, parts only where there are images. */
function openAiMessages(profile: OpenAiProfile, messages: readonly ChatMessage[]): unknown[] {
  return messages.map((message, at) => openAiMessage(profile, message, `messages[${at}]`));
}

function openAiMessage(profile: OpenAiProfile, message: ChatMessage, path: string): unknown {
  switch (message.role) {
    case "system":
    case "tool":
      return { ...message, content: contentText(message.content) };
    case "user":
      return { ...message, content: userContent(profile, message.content, path) };
    case "assistant": {
      const { reasoning_content: reasoning, tool_calls: calls, content, ...rest } = message;
      return {
        ...rest,
        content: assistantContent(profile, contentText(content), calls),
        ...(reasoning && Object.fromEntries(profile.reasoningFields.map((field) => [field, reasoning]))),
        ...(calls && { tool_calls: calls.map((call, index) => withArguments(call, `${path}.tool_calls[${index}]`)) }),
      };
    }
  }
}

function assistantContent(
  profile: OpenAiProfile,
  text: string,
  calls: readonly Call[] | undefined,
): string | null | undefined {
  return text === "" && calls !== undefined ? profile.contentBesideCalls : text;
}

function userContent(
  profile: OpenAiProfile,
  content: Extract<ChatMessage, { role: "user" }>["content"],
  path: string,
): unknown {
  if (typeof content === "string") return content;
  const image = content.findIndex(({ type }) => type === "image_url");
  if (image < 0) return contentText(content);
  if (profile.takesImages) return content;
  throw new Fault("unsupported_value", {
    message: "The runtime of this model does not accept images.",
    param: `${path}.content[${image}]`,
  });
}

/**
 * Checks a call's arguments, which templates take as an object. Empty arguments become `{}`; anything but a JSON object
 * is refused.
 */
function withArguments(call: Call, path: string): Call {
  const text = call.function.arguments;
  if (text.trim() === "") return { ...call, function: { ...call.function, arguments: "{}" } };
  if (isJsonObject(text)) return call;
  const param = `${path}.function.arguments`;
  throw new Fault("invalid_value", { message: `'${param}' must be a JSON object, as a string.`, param });
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** Returns the fields that chats and texts have in common. */
function sharedFields(
  body: ChatToRequest["body"] | TextToContinue,
  { profile, cacheSalt }: Pick<ChatToRequest, "profile" | "cacheSalt">,
): Readonly<Record<string, unknown>> {
  return {
    temperature: body.temperature,
    top_p: body.top_p,
    frequency_penalty: body.frequency_penalty,
    presence_penalty: body.presence_penalty,
    seed: body.seed,
    stop: profile.endsAtStops ? body.stop : undefined,
    logit_bias: body.logit_bias,
    cache_salt: profile.saltsCache ? cacheSalt : undefined,
  };
}

/**
 * Renders a text for `/v1/completions`, as a server of this profile takes it. Other fields are the same as in chats.
 */
export function openAiTextRequest(request: {
  readonly profile: OpenAiProfile;
  readonly model: ServedModel;
  readonly body: TextToContinue;
  readonly contextWindow: number;
  readonly cacheSalt?: string | undefined;
}): Readonly<Record<string, unknown>> {
  const { profile, model, body, contextWindow, cacheSalt } = request;
  const { texts } = profile;
  refuseUnsupportedText(body, texts.honoured);
  refuseUnknownTokens({ profile, model, body });
  if (!texts.takesEmpty) refuseEmptyText(body);
  return {
    model: model.name,
    prompt: body.prompt,
    suffix: body.suffix,
    stream: true,
    stream_options: { include_usage: true },
    max_tokens: answerTokens({
      tokensMax: body.max_tokens,
      unset: texts.answerTokensUnset,
      refusesOverWindow: profile.refusesLimitsOverWindow ?? false,
      estimatedTokens: () => estimateTextTokens(body.prompt),
      contextWindow,
    }),
    ...sharedFields(body, { profile, cacheSalt }),
    logprobs: body.logprobs === undefined ? undefined : Math.max(body.logprobs, texts.logprobsMin ?? 0),
    ...profile.always,
  };
}

/**
 * Returns the token limit to send to a server. If the client set no limit and the server has a default limit, this is
 * the estimated rest of the window. It is never less than the server's default.
 */
function answerTokens(limit: {
  readonly tokensMax: number | undefined;
  /** The server's default limit for an answer, if it has one. */
  readonly unset: number | undefined;
  /** True if the server refuses a limit that is more than the window. */
  readonly refusesOverWindow: boolean;
  readonly estimatedTokens: () => number;
  readonly contextWindow: number;
}): number | undefined {
  const { tokensMax, unset, contextWindow } = limit;
  if (tokensMax !== undefined) return limit.refusesOverWindow ? Math.min(tokensMax, contextWindow) : tokensMax;
  return unset === undefined ? undefined : Math.max(contextWindow - limit.estimatedTokens(), unset);
}

/**
 * Refuses a bias on a token that the model does not have, for a server that crashes on it. The crash would end the
 * answers of all clients. On such a server, a model with an unknown token count gets no bias at all.
 */
function refuseUnknownTokens(request: {
  readonly profile: OpenAiProfile;
  readonly model: ServedModel;
  readonly body: Pick<ChatBody, "logit_bias">;
}): void {
  const { profile, model, body } = request;
  const biased = Object.keys(body.logit_bias ?? {});
  if (!profile.diesOfUnknownTokens || biased.length === 0) return;
  const { tokenCount } = model;
  if (tokenCount === undefined) {
    throw new Fault("unsupported_parameter", {
      message:
        "The runtime of this model does not support 'logit_bias', since it does not tell which tokens there are.",
      param: "logit_bias",
    });
  }
  const unknown = biased.find((key) => !/^\d{1,9}$/.test(key) || Number(key) >= tokenCount);
  if (unknown === undefined) return;
  throw new Fault("invalid_value", {
    message: `'logit_bias' names ${unknown.slice(0, shownMax)}, which is no token of this model.`,
    param: "logit_bias",
  });
}

const shownMax = 32;
