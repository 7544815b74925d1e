import { Fault } from "#shared/fault/fault.ts";
import type { ChatBody } from "#shared/protocol/chat-body.ts";
import type { OpenAiProfile, ServedModel } from "./openai-profile.ts";

/**
 * Refuses a bias on a token that the model does not have, for a server that crashes on it. The crash would end the
 * answers of all clients. On such a server, a model with an unknown token count gets no bias at all.
 */
export function refuseUnknownTokens(asked: {
  readonly profile: OpenAiProfile;
  readonly model: ServedModel;
  readonly body: Pick<ChatBody, "logit_bias">;
}): void {
  const { profile, model, body } = asked;
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
