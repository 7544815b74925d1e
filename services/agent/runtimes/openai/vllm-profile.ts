import type { OpenAiProfile } from "./openai-profile.ts";
import { everyChoice } from "./openai-tool-choice.ts";
import { honouring } from "../refuse-unsupported.ts";
import { honouringInTexts } from "../refuse-unsupported-text.ts";

/** The temperature below which vLLM always takes the likeliest token. */
const greedyBelow = 1e-5;

/** vLLM honours nearly all of OpenAI's fields. It continues a last message only when it is told to. */
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
  // `reasoning_effort` knows "none" only in newer versions. The switch in the template works in all versions.
  thinking: (effort) =>
    effort === "none"
      ? { chat_template_kwargs: { enable_thinking: false, thinking: false } }
      : { reasoning_effort: effort },
  // The field was renamed; a version ignores the name that it does not know.
  reasoningFields: ["reasoning", "reasoning_content"],
  contentBesideCalls: null,
  endsAtStops: true,
  refusesLimitsOverWindow: true,
  saltsCache: true,
  // vLLM refuses several answers without sampling, because all of them would be the same.
  refusesSeveral: ({ temperature = 1 }) => temperature < greedyBelow,
  dropsUnreadableCalls: false,
  mayIgnoreLogprobs: false,
  texts: {
    // vLLM itself refuses a suffix if the model was not made for one.
    honoured: honouringInTexts("suffix", "logprobs", "logit_bias"),
    takesEmpty: false,
    answerTokensUnset: 16,
  },
};

/** The number of requests that vLLM runs at once by default (`max_num_seqs`). vLLM silently queues more. */
export const vllmSlotsDefault = 256;
