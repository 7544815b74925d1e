import type { OpenAiProfile } from "./openai-profile.ts";
import { everyChoice } from "./openai-tool-choice.ts";
import { honouring } from "../refuse-unsupported.ts";
import { honouringInTexts } from "../refuse-unsupported-text.ts";

/** The temperature below which vLLM takes the likeliest token always. */
const greedyBelow = 1e-5;

/** vLLM honours nearly all of OpenAI's fields, and goes on from a last message only when it is told to. */
export const vllm: OpenAiProfile = {
  kind: "vllm",
  name: "vLLM",
  honoured: honouring("n", "logprobs", "top_logprobs", "logit_bias", "response_format"),
  answersSeveral: true,
  takesImages: true,
  prefill: "continues",
  always: {},
  tools: everyChoice,
  takesParallelToolCalls: true,
  responseFormat: (format) => format,
  // Its own field knows "none" only in newer versions; the switch in the template works in all of them.
  thinking: (effort) =>
    effort === "none"
      ? { chat_template_kwargs: { enable_thinking: false, thinking: false } }
      : { reasoning_effort: effort },
  // The field was renamed; a version ignores the name that it does not know.
  reasoningFields: ["reasoning", "reasoning_content"],
  contentBesideCalls: null,
  endsAtStops: true,
  refusesLimitsOverWindow: true,
  // Without chance all answers would be the same, it says.
  refusesSeveral: ({ temperature = 1 }) => temperature < greedyBelow,
  dropsUnreadableCalls: false,
  mayIgnoreLogprobs: false,
  texts: {
    // It refuses a suffix itself where the model was not made for one.
    honoured: honouringInTexts("suffix", "logprobs", "logit_bias"),
    takesEmpty: false,
    answerTokensUnset: 16,
  },
};

/** As many as vLLM runs at once by default (max_num_seqs). It queues more without a word. */
export const vllmSlotsDefault = 256;
