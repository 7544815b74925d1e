import { Fault } from "#shared/fault/fault.ts";
import { type ChatBody, type ChatMessage, contentText, type TextToContinue } from "#shared/protocol/job-bodies.ts";
import { imagesAfterResults } from "../images-after-results.ts";
import {
  argumentsOf,
  honouring,
  honouringInTexts,
  modelsChoice,
  nothingToContinue,
  refuseUnsupported,
} from "../refuse-unsupported.ts";
import type { ChatRun } from "../runtime.ts";
import type { OllamaEntry, OllamaShow } from "./ollama-catalogue.ts";

const sampling = ["top_k", "min_p", "typical_p", "repeat_penalty"] as const;
const honoured = honouring("logprobs", "top_logprobs", "response_format", ...sampling);

/**
 * Fields that are refused on Ollama's MLX engine. It accepts the first two and `typical_p` and drops them silently; its
 * support for the others is unknown.
 */
const notOnMlx = ["stop", "response_format", "logprobs", "top_logprobs", "typical_p"] as const;
const honouredOnMlx = honoured.difference(new Set<string>(notOnMlx));

const imageTypes = ["image/jpeg", "image/jpg", "image/png", "image/webp"];

/**
 * Renders a chat for Ollama's `/api/chat`. Refuses fields that Ollama would ignore. `truncate: false` makes Ollama
 * refuse a conversation that is too long. By default it drops the oldest messages silently.
 */
export function ollamaChatRequest(
  entry: OllamaEntry,
  { body, capabilities }: Pick<ChatRun, "body" | "capabilities">,
): Readonly<Record<string, unknown>> {
  const { isMlx } = entry.show;
  refuseUnsupported(body, isMlx ? honouredOnMlx : honoured);
  return {
    model: entry.name,
    stream: true,
    truncate: false,
    messages: ollamaMessages(body.messages),
    tools: modelsChoice(body).tools,
    format: format(body),
    think: capabilities.thinking ? think(body, entry.show) : undefined,
    logprobs: body.logprobs || undefined,
    top_logprobs: body.logprobs ? body.top_logprobs : undefined,
    options: ollamaOptions(body),
  };
}

function format(body: ChatBody): unknown {
  const wanted = body.response_format;
  if (wanted === undefined || wanted.type === "text") return undefined;
  return wanted.type === "json_schema" ? (wanted.json_schema.schema ?? "json") : "json";
}

/** Ollama's levels of thinking by the effort. gpt-oss has none above `high`. */
const levels = { minimal: "low", low: "low", medium: "medium", high: "high", xhigh: "max", max: "max" } as const;

/** Returns Ollama's `think` value. Without an effort the model keeps its own default, which is to think. */
function think({ reasoning_effort: effort }: ChatBody, { isGptOss }: OllamaShow): string | boolean | undefined {
  if (effort === undefined) return undefined;
  if (effort !== "none") return isGptOss && levels[effort] === "max" ? "high" : levels[effort];
  if (!isGptOss) return false;
  const message = "This model always thinks: 'reasoning_effort' can be minimal, low, medium, high, xhigh or max.";
  throw new Fault("unsupported_value", { message, param: "reasoning_effort" });
}

function ollamaMessages(messages: readonly ChatMessage[]): unknown[] {
  const toolNameByCall = new Map<string, string>();
  for (const [at, { role, content }] of messages.entries())
    if (role !== "assistant") assertImageTypes(content, `messages[${at}]`);
  return imagesAfterResults(messages).map(({ message, at }) => {
    const path = `messages[${at}]`;
    const content = contentText(message.content);
    switch (message.role) {
      case "system":
        return { role: "system", content };
      case "user":
        return { role: "user", content, images: images(message.content) };
      case "assistant":
        for (const call of message.tool_calls ?? []) toolNameByCall.set(call.id, call.function.name);
        return {
          role: "assistant",
          content,
          thinking: message.reasoning_content ?? undefined,
          tool_calls: message.tool_calls?.map((call, index) => ({
            id: call.id,
            function: {
              name: call.function.name,
              arguments: argumentsOf(call.function.arguments, `${path}.tool_calls[${index}].function.arguments`),
            },
          })),
        };
      case "tool": {
        const id = message.tool_call_id;
        return { role: "tool", content, tool_call_id: id, tool_name: toolNameByCall.get(id) };
      }
    }
  });
}

type Content = Extract<ChatMessage, { role: "user" }>["content"];

/** Returns the images of a message in base64, the only form that Ollama takes. */
function images(content: Content): string[] | undefined {
  if (typeof content === "string") return undefined;
  const found = content.flatMap((part) =>
    part.type === "image_url" ? [part.image_url.url.slice(part.image_url.url.indexOf(",") + 1)] : [],
  );
  return found.length === 0 ? undefined : found;
}

function assertImageTypes(content: Content, path: string): void {
  if (typeof content === "string") return;
  for (const [index, part] of content.entries()) {
    if (part.type === "text") continue;
    const { url } = part.image_url;
    const head = url.slice(0, Math.max(url.indexOf(","), 0)).toLowerCase();
    if (imageTypes.some((type) => head === `data:${type};base64`)) continue;
    const param = `${path}.content[${index}].image_url.url`;
    const message = `'${param}' must be a data URL with base64 of one of the types ${imageTypes.join(", ")}.`;
    throw new Fault("invalid_value", { message, param });
  }
}

const honouredInTexts = honouringInTexts("suffix", "logprobs", ...sampling);

/**
 * The fields honouredInTexts on Ollama's MLX engine. The engine drops logprobs silently. It also drops stop strings, so the
 * adapter cuts the answer there.
 */
const honouredInTextsOnMlx = honouringInTexts("suffix", "top_k", "min_p", "repeat_penalty");

/**
 * Renders a text for Ollama's `/api/generate`, as `raw`: without a template. A request with a suffix uses the model's
 * template, since only the template knows the model's form for it.
 *
 * Ollama separates reasoning in raw answers too, unless `think` is false. An empty prompt would only load the model.
 */
export function ollamaTextRequest(entry: OllamaEntry, body: TextToContinue): Readonly<Record<string, unknown>> {
  const { isMlx, inserts } = entry.show;
  refuseUnsupported(body, isMlx ? honouredInTextsOnMlx : honouredInTexts);
  if (body.prompt === "") throw nothingToContinue();
  if (body.suffix !== undefined && !inserts) {
    throw new Fault("unsupported_parameter", { message: "The model does not support 'suffix'.", param: "suffix" });
  }
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

/**
 * Returns the request's settings by Ollama's names. It sends no option that makes Ollama reload a model (`num_ctx`,
 * `shift`), and overrides no default of the model.
 */
function ollamaOptions(body: ChatBody | TextToContinue): Readonly<Record<string, unknown>> {
  const { max_tokens: num_predict, temperature, top_p, frequency_penalty, presence_penalty, seed, stop } = body;
  const own = Object.fromEntries(sampling.map((field) => [field, body[field]]));
  return { num_predict, temperature, top_p, frequency_penalty, presence_penalty, seed, stop, ...own };
}
