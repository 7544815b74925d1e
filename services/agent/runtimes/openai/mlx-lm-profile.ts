import type { OpenAiProfile } from "./openai-profile.ts";
import { modelsChoice } from "./openai-tool-choice.ts";
import { honouring } from "../refuse-unsupported.ts";
import { honouringInTexts } from "../refuse-unsupported-text.ts";

/** The server of mlx-lm. It ignores unknown fields, and knows fewer fields than other servers. */
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
  // mlx-lm has no field for thinking, and passes these arguments to the model's template.
  thinking: (effort) => ({
    chat_template_kwargs: effort === "none" ? { enable_thinking: false } : { reasoning_effort: effort },
  }),
  reasoningFields: [],
  contentBesideCalls: "",
  answerTokensUnset: 512,
  // mlx-lm removes a stop string from the text, but stops only if the string comes in exactly the expected tokens.
  endsAtStops: false,
  promptTokensIn,
  diesOfUnknownTokens: true,
  dropsUnreadableCalls: true,
  mayIgnoreLogprobs: false,
  texts: {
    honoured: honouringInTexts("logit_bias"),
    // After an empty text, mlx-lm would never answer any request again.
    takesEmpty: false,
    answerTokensUnset: 512,
    leavesOutMarked: true,
  },
};

/**
 * Reads the prompt's length from a keepalive comment. mlx-lm reads prompts of any length. The length leaves out the
 * part that mlx-lm had read before.
 */
function promptTokensIn(comment: string): number | undefined {
  const total = /^keepalive \d+\/(\d+)$/.exec(comment)?.[1];
  return total === undefined ? undefined : Number(total);
}

/** The slots of mlx-lm. It batches requests and reports no limit; a few share one machine's memory well. */
export const mlxLmSlotsDefault = 4;
