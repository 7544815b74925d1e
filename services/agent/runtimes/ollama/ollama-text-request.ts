import { Fault } from "#shared/fault/fault.ts";
import type { TextToContinue } from "#shared/protocol/complete-body.ts";
import { honouringInTexts, refuseEmptyText, refuseUnsupportedText } from "../refuse-unsupported-text.ts";
import type { OllamaEntry } from "./ollama-catalogue.ts";
import { ollamaOptions } from "./ollama-options.ts";

const honoured = honouringInTexts("suffix", "logprobs");

/** Ollama's MLX engine drops them without a word. It also drops stop strings, at which the answer is cut in its place. */
const honouredOnMlx = honouringInTexts("suffix");

/**
 * A text in the form of Ollama's `/api/generate`: `raw`, as it is. Only where something is to follow the answer the
 * model's template is used, since that alone knows how its models are told.
 *
 * Ollama tells thoughts apart in raw answers as well, unless it is told that there are none. An empty prompt would only
 * load the model.
 */
export function ollamaTextRequest(entry: OllamaEntry, body: TextToContinue): Readonly<Record<string, unknown>> {
  const { isMlx, inserts } = entry.show;
  refuseUnsupportedText(body, isMlx ? honouredOnMlx : honoured);
  refuseEmptyText(body);
  if (body.suffix !== undefined && !inserts) throw insertsNothing();
  return {
    model: entry.name,
    prompt: body.prompt,
    suffix: body.suffix,
    raw: body.suffix === undefined,
    stream: true,
    truncate: false,
    think: false,
    logprobs: body.logprobs !== undefined || undefined,
    top_logprobs: body.logprobs || undefined,
    options: ollamaOptions(isMlx ? { ...body, stop: undefined } : body),
  };
}

function insertsNothing(): Fault {
  return new Fault("unsupported_parameter", { message: "The model does not support 'suffix'.", param: "suffix" });
}
