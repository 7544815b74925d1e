import { Fault } from "#shared/fault/fault.ts";
import type { TextToContinue } from "#shared/protocol/complete-body.ts";
import { honouringInTexts, refuseEmptyText, refuseUnsupportedText } from "../refuse-unsupported-text.ts";
import type { OllamaEntry } from "./ollama-catalogue.ts";
import { ollamaOptions } from "./ollama-options.ts";

const honoured = honouringInTexts("suffix", "logprobs");

/**
 * The fields honoured on Ollama's MLX engine. The engine drops logprobs silently. It also drops stop strings, so the
 * adapter cuts the answer there.
 */
const honouredOnMlx = honouringInTexts("suffix");

/**
 * Renders a text for Ollama's `/api/generate`, as `raw`: without a template. A request with a suffix uses the model's
 * template, since only the template knows the model's form for it.
 *
 * Ollama separates reasoning in raw answers too, unless `think` is false. An empty prompt would only load the model.
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
