import type { OpenAiProfile } from "./openai-profile.ts";
import { everyChoice } from "./openai-tool-choice.ts";

/**
 * Any other server that answers like OpenAI's. It is taken at its word, that it honours what OpenAI does; what can be
 * told from its answers is checked.
 */
export const otherServer: OpenAiProfile = {
  kind: "openai",
  name: "the OpenAI-shaped server",
  honoured: new Set([
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_tokens",
    "temperature",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "seed",
    "stop",
    "logprobs",
    "top_logprobs",
    "logit_bias",
    "response_format",
    "reasoning_effort",
  ]),
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
};

/** Nothing is known of it: as many as the servers that most people run take by default. */
export const otherServerSlotsDefault = 4;
