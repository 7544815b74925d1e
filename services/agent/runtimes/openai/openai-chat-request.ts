import { Fault } from "#shared/fault/fault.ts";
import { contentText, type ChatBody } from "#shared/protocol/chat-body.ts";
import { answerTokens } from "./answer-tokens.ts";
import { estimateTokens } from "../context-overflow.ts";
import { openAiMessages } from "./openai-messages.ts";
import type { OpenAiProfile, ServedModel } from "./openai-profile.ts";
import { refuseUnsupported } from "../refuse-unsupported.ts";
import { refuseUnknownTokens } from "./unknown-tokens.ts";

interface AskedChat {
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
export function openAiChatRequest(chat: AskedChat): Readonly<Record<string, unknown>> {
  const { profile, model, body, thinks, contextWindow, cacheSalt } = chat;
  refuseUnsupported(body, profile.honoured);
  profile.refuse?.(body);
  refuseUnknownTokens({ profile, model, body });
  const { tools, tool_choice: toolChoice } = profile.tools(askedTools(body), model);
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
    temperature: body.temperature,
    top_p: body.top_p,
    frequency_penalty: body.frequency_penalty,
    presence_penalty: body.presence_penalty,
    seed: body.seed,
    stop: profile.endsAtStops ? body.stop : undefined,
    n: profile.answersSeveral ? body.n : undefined,
    logprobs: body.logprobs || undefined,
    top_logprobs: body.logprobs ? body.top_logprobs : undefined,
    logit_bias: body.logit_bias,
    response_format: format === undefined || format.type === "text" ? undefined : profile.responseFormat(format),
    ...(body.reasoning_effort && profile.thinking(body.reasoning_effort, thinks)),
    cache_salt: profile.saltsCache ? cacheSalt : undefined,
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
function askedTools({ tools, tool_choice: choice }: ChatBody): Pick<ChatBody, "tools" | "tool_choice"> {
  return tools === undefined ? {} : { tools, ...(choice !== undefined && { tool_choice: choice }) };
}
