import { Fault } from "#shared/fault/fault.ts";
import type { Capabilities } from "#shared/protocol/model.ts";
import { type ChatBody, type ChatMessage, contentText } from "#shared/protocol/job-bodies.ts";
import { estimatePromptTokens } from "../runtime-faults.ts";
import { imagesAfterResults } from "../images-after-results.ts";
import { argumentsOf, nothingToContinue, refuseUnsupported, type RuntimeSampling } from "../refuse-unsupported.ts";
import type { ChatRun, CompleteRun } from "../runtime.ts";
import type { Fields, OpenAiProfile, Served, Tools } from "./openai-profile.ts";

type TextToRequest = Pick<CompleteRun, "body" | "contextWindow" | "cacheSalt">;
type ChatToRequest = Pick<ChatRun, "body" | "contextWindow" | "cacheSalt"> & {
  readonly capabilities: Pick<Capabilities, "thinking">;
};

/**
 * Renders a chat for `/v1/chat/completions`, as a server of this profile takes it. Refuses fields that the server would
 * ignore. Fields that the client omitted stay unset, so that the model's own defaults apply.
 */
export function openAiChatRequest(served: Served, chat: ChatToRequest): Fields {
  const { profile, model } = served;
  const { body, capabilities } = chat;
  refuseUnsupported(body, profile.honoured, profile.sampling);
  profile.refuse?.(body, model);
  // A choice without tools has no meaning, and is left out.
  const { tools, tool_choice: toolChoice }: Tools = body.tools === undefined ? {} : profile.tools(body, model);
  const format = body.response_format;
  return {
    ...sharedFields(served, chat, profile.answerTokensUnset),
    ...(profile.tellsTokensSoFar &&
      (body.n ?? 1) === 1 && { stream_options: { include_usage: true, continuous_usage_stats: true } }),
    messages: sentMessages(profile, body),
    tools,
    tool_choice: toolChoice,
    parallel_tool_calls: profile.takesParallelToolCalls && tools ? body.parallel_tool_calls : undefined,
    n: profile.answersSeveral ? body.n : undefined,
    logprobs: body.logprobs || undefined,
    top_logprobs: body.logprobs ? body.top_logprobs : undefined,
    response_format: format === undefined || format.type === "text" ? undefined : profile.responseFormat(format),
    ...profile.form?.(body),
    ...thinkingFields(profile, body, capabilities.thinking),
    ...(body.messages.at(-1)?.role === "assistant" && prefill(profile, body.messages.length - 1)),
  };
}

/** Returns the fields of thinking. Arguments of the client's own join those by which the server switches thinking. */
function thinkingFields(profile: OpenAiProfile, body: ChatBody, thinks: boolean): Fields {
  const { reasoning_effort: effort, chat_template_kwargs: own } = body;
  const fields = effort === undefined ? {} : profile.thinking(effort, thinks);
  if (own === undefined || !profile.honoured.has("chat_template_kwargs")) return fields;
  return { ...fields, chat_template_kwargs: { ...Object(fields["chat_template_kwargs"]), ...own } };
}

/** Returns the fields by which a server goes on with a last message of the assistant. */
function prefill(profile: OpenAiProfile, last: number): Fields {
  if (profile.prefill === "as-the-template") return {};
  if (profile.prefill === "continues") return { continue_final_message: true, add_generation_prompt: false };
  const message = "The runtime of this model cannot go on from a last message with the role 'assistant'.";
  throw new Fault("unsupported_value", { message, param: `messages[${last}]` });
}

/** Renders the messages, with the images of results where the server takes them. Only results of tools may have to move. */
function sentMessages(profile: OpenAiProfile, { messages }: ChatBody): unknown[] {
  const mayMove = !profile.takesResultImages && messages.some(({ role }) => role === "tool");
  if (mayMove) return imagesAfterResults(messages).map(({ message, at }) => openAiMessage(profile, message, at));
  return messages.map((message, at) => openAiMessage(profile, message, at));
}

type SentCall = NonNullable<Extract<ChatMessage, { role: "assistant" }>["tool_calls"]>[number];

/** Renders a message for a server of this profile: text as one string, parts only where there are images. */
function openAiMessage(profile: OpenAiProfile, message: ChatMessage, at: number): unknown {
  switch (message.role) {
    case "system":
      return { ...message, content: contentText(message.content) };
    case "user":
    case "tool":
      return { ...message, content: userContent(message.content) };
    case "assistant": {
      const { reasoning_content: reasoning, tool_calls: calls, content, ...rest } = message;
      return {
        ...rest,
        content: contentText(content) || (calls === undefined ? "" : profile.contentBesideCalls),
        ...(reasoning && Object.fromEntries(profile.reasoningFields.map((field) => [field, reasoning]))),
        ...(calls && {
          tool_calls: calls.map((call, index) => withArguments(call, `messages[${at}].tool_calls[${index}]`)),
        }),
      };
    }
  }
}

function userContent(content: Extract<ChatMessage, { role: "user" }>["content"]): unknown {
  if (typeof content === "string") return content;
  return content.some(({ type }) => type === "image_url") ? content : contentText(content);
}

/** Checks a call's arguments, which templates take as an object. Empty arguments become `{}`. */
function withArguments(call: SentCall, path: string): SentCall {
  argumentsOf(call.function.arguments, `${path}.function.arguments`);
  return { ...call, function: { ...call.function, arguments: call.function.arguments.trim() || "{}" } };
}

/**
 * Returns the fields that chats and texts have in common. Without a limit for the answer, a server with a default limit
 * (`answerTokensUnset`) gets the estimated rest of the window, and never less than its default.
 */
function sharedFields(
  { profile, model }: Served,
  { body, contextWindow, cacheSalt }: ChatToRequest | TextToRequest,
  answerTokensUnset: number | undefined,
): Fields {
  let tokensMax = body.max_tokens;
  if (tokensMax !== undefined && profile.refusesLimitsOverWindow) tokensMax = Math.min(tokensMax, contextWindow);
  if (tokensMax === undefined && answerTokensUnset !== undefined) {
    tokensMax = Math.max(contextWindow - estimatePromptTokens(body), answerTokensUnset);
  }
  const sampling = Object.entries(profile.sampling) as [RuntimeSampling, string][];
  return {
    model: model.name,
    stream: true,
    stream_options: { include_usage: true },
    max_tokens: tokensMax,
    ...Object.fromEntries(sampling.map(([field, name]) => [name, body[field]])),
    temperature: body.temperature,
    top_p: body.top_p,
    frequency_penalty: body.frequency_penalty,
    presence_penalty: body.presence_penalty,
    seed: body.seed,
    stop: profile.endsAtStops ? body.stop : undefined,
    logit_bias: body.logit_bias,
    cache_salt: profile.saltsCache ? cacheSalt : undefined,
    ...profile.always,
  };
}

/**
 * Renders a text for `/v1/completions`, as a server of this profile takes it. Other fields are the same as in chats.
 */
export function openAiTextRequest(served: Served, text: TextToRequest): Fields {
  const { profile, model } = served;
  const { texts } = profile;
  const { body } = text;
  refuseUnsupported(body, texts.honoured, profile.sampling);
  texts.refuse?.(body, model);
  if (!texts.takesEmpty && body.prompt === "") throw nothingToContinue();
  return {
    ...sharedFields(served, text, texts.answerTokensUnset),
    prompt: body.prompt,
    suffix: body.suffix,
    logprobs: body.logprobs === undefined ? undefined : Math.max(body.logprobs, texts.logprobsMin ?? 0),
  };
}
