import { Fault } from "#shared/fault/fault.ts";
import type { ChatBody } from "#shared/protocol/chat-body.ts";
import type { Effort, OpenAiProfile, ServedModel, Tools } from "./openai-profile.ts";
import { choiceInWords } from "./openai-tool-choice.ts";
import { honouring } from "../refuse-unsupported.ts";
import { honouringInTexts } from "../refuse-unsupported-text.ts";

/** LM Studio. Fields that its documentation does not list count as unsupported. */
export const lmStudio: OpenAiProfile = {
  kind: "lm-studio",
  name: "LM Studio",
  honoured: honouring("logit_bias", "response_format"),
  answersSeveral: false,
  takesImages: true,
  prefill: "as-the-template",
  always: {},
  tools: chosenTools,
  takesParallelToolCalls: false,
  responseFormat,
  thinking,
  reasoningFields: [],
  contentBesideCalls: undefined,
  endsAtStops: true,
  dropsUnreadableCalls: false,
  mayIgnoreLogprobs: false,
  texts: { honoured: honouringInTexts("logit_bias"), takesEmpty: false },
};

/** The number of predictions that LM Studio runs at once for one model by default. */
export const lmStudioSlotsDefault = 4;

/**
 * Returns the tools and their choice. LM Studio's MLX engine leaves the choice to the model, whatever value is sent.
 */
function chosenTools(asked: Tools, model: ServedModel): Tools {
  const choice = asked.tool_choice ?? "auto";
  if (model.onAppleMlx !== true || choice === "auto" || choice === "none") return choiceInWords(asked);
  throw new Fault("unsupported_value", {
    message: "LM Studio's MLX engine leaves it to the model whether to call a tool: 'tool_choice' can be auto or none.",
    param: "tool_choice",
  });
}

/** LM Studio supports only JSON schemas. `json_object` becomes the schema of any object. */
function responseFormat(format: NonNullable<ChatBody["response_format"]>): unknown {
  if (format.type !== "json_object") return format;
  return { type: "json_schema", json_schema: { name: "json_object", schema: { type: "object" } } };
}

/** LM Studio's `/v1` takes only the levels of gpt-oss, and cannot disable the thinking of a model. */
function thinking(effort: Effort, thinks: boolean): Readonly<Record<string, unknown>> {
  if (effort === "none" && !thinks) return {};
  if (effort === "low" || effort === "medium" || effort === "high") return { reasoning_effort: effort };
  throw new Fault("unsupported_value", {
    message: "The runtime of this model takes 'reasoning_effort' as low, medium or high.",
    param: "reasoning_effort",
  });
}
