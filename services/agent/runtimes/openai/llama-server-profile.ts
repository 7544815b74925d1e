import { Fault } from "#shared/fault/fault.ts";
import type { ChatBody } from "#shared/protocol/chat-body.ts";
import type { OpenAiProfile } from "./openai-profile.ts";
import { choiceInWords } from "./openai-tool-choice.ts";
import { honouring } from "../refuse-unsupported.ts";
import { honouringInTexts } from "../refuse-unsupported-text.ts";

/** llama-server of llama.cpp, with one model or as a router for many. */
export const llamaServer: OpenAiProfile = {
  kind: "llama-server",
  name: "llama-server",
  honoured: honouring("logprobs", "top_logprobs", "logit_bias", "response_format"),
  // llama-server takes `n` up to its slots, and one client would then have all of them.
  answersSeveral: false,
  takesImages: true,
  prefill: "continues",
  always: { return_progress: true },
  // llama-server reads a named function in `tool_choice` as any offered function.
  tools: choiceInWords,
  takesParallelToolCalls: true,
  responseFormat: (format) => format,
  thinking: (effort) => ({
    reasoning_effort: effort,
    ...(effort === "none" && { chat_template_kwargs: { enable_thinking: false } }),
  }),
  reasoningFields: ["reasoning_content"],
  contentBesideCalls: null,
  refuse: refuseLogprobsWithTools,
  endsAtStops: true,
  dropsUnreadableCalls: false,
  mayIgnoreLogprobs: false,
  texts: {
    // llama-server ignores `suffix` here. Its own interface for a suffix cuts a text that is too long.
    honoured: honouringInTexts("logprobs", "logit_bias"),
    takesEmpty: true,
    logprobsMin: 1,
  },
};

/** The slots of a llama-server that does not report them: its default of `--parallel`. */
export const llamaServerSlotsDefault = 4;

function refuseLogprobsWithTools(body: ChatBody): void {
  if (body.logprobs !== true || body.tools === undefined) return;
  throw new Fault("unsupported_parameter", {
    message: "The runtime of this model does not support 'logprobs' together with 'tools'.",
    param: "logprobs",
  });
}
