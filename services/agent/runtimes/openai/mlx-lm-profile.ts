import type { OpenAiProfile } from "./openai-profile.ts";
import { modelsChoice } from "./openai-tool-choice.ts";
import { honouring } from "../refuse-unsupported.ts";
import { honouringInTexts } from "../refuse-unsupported-text.ts";

/** The server of mlx-lm. It ignores what it does not know, and knows less than others. */
export const mlxLm: OpenAiProfile = {
  kind: "mlx-lm",
  name: "mlx-lm",
  honoured: honouring("logit_bias"),
  answersSeveral: false,
  takesImages: false,
  prefill: "never",
  always: {},
  tools: modelsChoice,
  takesParallelToolCalls: false,
  responseFormat: (format) => format,
  // It has no field of its own, and hands these to the model's template.
  thinking: (effort) => ({
    chat_template_kwargs: effort === "none" ? { enable_thinking: false } : { reasoning_effort: effort },
  }),
  reasoningFields: [],
  contentBesideCalls: "",
  answerTokensUnset: 512,
  // It takes a stop string out of the text, and stops only where that comes in the very tokens that it expects.
  endsAtStops: false,
  promptTokensIn,
  diesOfUnknownTokens: true,
  dropsUnreadableCalls: true,
  mayIgnoreLogprobs: false,
  texts: {
    honoured: honouringInTexts("logit_bias"),
    // It would never answer anybody again.
    takesEmpty: false,
    answerTokensUnset: 512,
    leavesOutMarked: true,
  },
};

/** It reads prompts of any length. What it had read before is not counted in. */
function promptTokensIn(comment: string): number | undefined {
  const total = /^keepalive \d+\/(\d+)$/.exec(comment)?.[1];
  return total === undefined ? undefined : Number(total);
}

/** mlx-lm batches what it is sent, without a limit that it tells: a few share one machine's memory well. */
export const mlxLmSlotsDefault = 4;
