import { Fault } from "#shared/fault/fault.ts";
import type { ChatBody } from "#shared/protocol/chat-body.ts";
import type { OpenAiProfile, ServedModel } from "./openai-profile.ts";

/**
 * Refuses a bias on what is no token of the model, for a server that dies of it and takes everybody's answers with it. So
 * no bias can be had there on a model of which nobody knows how many tokens it has.
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
