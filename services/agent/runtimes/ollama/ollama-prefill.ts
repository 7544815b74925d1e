import { z } from "zod";
import type { ChatBody, TextToContinue } from "#shared/protocol/job-bodies.ts";
import { prefilledText } from "../adjust-answer.ts";
import { firstImage } from "../refuse-unsupported.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { ChatRun } from "../runtime.ts";
import type { OllamaEntry } from "./ollama-catalogue.ts";
import { ollamaChatRequest } from "./ollama-request.ts";

const rendered = z.object({ _debug_info: z.object({ rendered_template: z.string() }).optional() });

/**
 * Returns a chat that ends with text of the assistant as a text to continue. Many of Ollama's templates close the last
 * message and begin another one, so Ollama renders the prompt before it, and the text follows there. Returns undefined
 * where the parser of the model's answer is needed, and for an Ollama that does not render.
 */
export async function prefillAsText(
  { body, capabilities, signal }: Pick<ChatRun, "body" | "capabilities" | "signal">,
  { entry, connection }: { readonly entry: OllamaEntry; readonly connection: Pick<RuntimeConnection, "ask"> },
): Promise<TextToContinue | undefined> {
  const begun = prefilledText(body);
  if (begun === "" || entry.show.isMlx || needsParser(body, capabilities.thinking)) return undefined;
  const before = { ...body, messages: body.messages.slice(0, -1) };
  // An Ollama that does not know how to render answers instead, with one token.
  const question = {
    ...ollamaChatRequest(entry, { body: before, capabilities }),
    stream: false,
    _debug_render_only: true,
    options: { num_predict: 1 },
  };
  const { _debug_info: info } = await connection.ask(rendered, { path: "/api/chat", body: question, signal });
  if (info === undefined) return undefined;
  const { max_tokens, temperature, top_p, frequency_penalty, presence_penalty, seed, stop } = body;
  const { top_k, min_p, typical_p, repeat_penalty } = body;
  const shared = { max_tokens, temperature, top_p, frequency_penalty, presence_penalty, seed, stop };
  return { prompt: `${info.rendered_template}${begun}`, ...shared, top_k, min_p, typical_p, repeat_penalty };
}

function needsParser(body: ChatBody, thinks: boolean): boolean {
  const { tools, response_format: format, logprobs, reasoning_effort: effort } = body;
  const isForm = format !== undefined && format.type !== "text";
  const mayThink = thinks && effort !== "none";
  return mayThink || isForm || tools !== undefined || logprobs === true || firstImage(body) !== undefined;
}
