import type { TextToContinue } from "#shared/protocol/complete-body.ts";
import { estimateTextTokens } from "../context-overflow.ts";
import { answerTokens } from "./answer-tokens.ts";
import type { OpenAiProfile, ServedModel } from "./openai-profile.ts";
import { refuseEmptyText, refuseUnsupportedText } from "../refuse-unsupported-text.ts";
import { refuseUnknownTokens } from "./unknown-tokens.ts";

/**
 * Renders a text for `/v1/completions`, as a server of this profile takes it. Other fields are the same as in chats.
 */
export function openAiTextRequest(asked: {
  readonly profile: OpenAiProfile;
  readonly model: ServedModel;
  readonly body: TextToContinue;
  readonly contextWindow: number;
  readonly cacheSalt?: string | undefined;
}): Readonly<Record<string, unknown>> {
  const { profile, model, body, contextWindow, cacheSalt } = asked;
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
    temperature: body.temperature,
    top_p: body.top_p,
    frequency_penalty: body.frequency_penalty,
    presence_penalty: body.presence_penalty,
    seed: body.seed,
    stop: profile.endsAtStops ? body.stop : undefined,
    logprobs: body.logprobs === undefined ? undefined : Math.max(body.logprobs, texts.logprobsMin ?? 0),
    logit_bias: body.logit_bias,
    cache_salt: profile.saltsCache ? cacheSalt : undefined,
    ...profile.always,
  };
}
