import type { OpenAiProfile } from "./openai-profile.ts";
import { everyChoice } from "./openai-tool-choice.ts";
import { honouring } from "../refuse-unsupported.ts";
import { honouringInTexts } from "../refuse-unsupported-text.ts";

/**
 * Any other OpenAI-shaped server. The adapter assumes that it honours the fields that OpenAI does, and checks what its
 * answers can show.
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
  failsSilently: true,
  dropsUnreadableCalls: false,
  mayIgnoreLogprobs: true,
  texts: { honoured: honouringInTexts("logprobs", "logit_bias"), takesEmpty: true, answerTokensUnset: 16 },
};

/** The slots of a server of unknown kind: as many as the most common servers run by default. */
export const otherServerSlotsDefault = 4;
