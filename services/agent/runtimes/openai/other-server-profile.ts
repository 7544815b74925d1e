import type { OpenAiProfile } from "./openai-profile.ts";
import { everyChoice } from "./openai-tool-choice.ts";
import { honouring } from "../refuse-unsupported.ts";
import { honouringInTexts } from "../refuse-unsupported-text.ts";

/**
 * Any other server that answers like OpenAI's. It is taken at its word, that it honours what OpenAI does; what can be
 * told from its answers is checked.
 */
export const otherServer: OpenAiProfile = {
  kind: "openai",
  name: "the OpenAI-shaped server",
  honoured: honouring("logprobs", "top_logprobs", "logit_bias", "response_format"),
  answersSeveral: false,
  takesImages: true,
  prefill: "as-the-template",
  always: {},
  tools: everyChoice,
  takesParallelToolCalls: true,
  responseFormat: (format) => format,
  thinking: (effort) => ({ reasoning_effort: effort }),
  reasoningFields: ["reasoning_content"],
  contentBesideCalls: null,
  endsAtStops: true,
  dropsUnreadableCalls: false,
  mayIgnoreLogprobs: true,
  texts: { honoured: honouringInTexts("logprobs", "logit_bias"), takesEmpty: true, answerTokensUnset: 16 },
};

/** Nothing is known of it: as many as the servers that most people run take by default. */
export const otherServerSlotsDefault = 4;
