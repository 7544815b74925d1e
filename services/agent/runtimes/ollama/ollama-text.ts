import { ContextOverflow, estimateTextTokens, toldOverflow } from "../context-overflow.ts";
import { cutAtStops } from "../cut-at-stops.ts";
import type { OllamaCatalogue } from "./ollama-catalogue.ts";
import { OllamaChatAnswer, readOllamaAnswer } from "./ollama-chat-answer.ts";
import { ollamaTextRequest } from "./ollama-text-request.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { CompleteRun, EmitEvents } from "../runtime.ts";

/** Continues one text on `/api/generate`. */
export async function ollamaText(
  {
    run,
    connection,
    models,
  }: { readonly run: CompleteRun; readonly connection: RuntimeConnection; readonly models: OllamaCatalogue },
  emit: EmitEvents,
): Promise<void> {
  const { body, contextWindow, signal, onProgress } = run;
  const entry = await models.find(run.model, signal);
  const request = ollamaTextRequest(entry, body);
  const estimatedTokens = estimateTextTokens(body.prompt);
  if (!entry.loaded) onProgress("loading");
  const answer = new OllamaChatAnswer({
    parallelToolCalls: false,
    tokensMax: body.max_tokens,
    promptTokens: () => estimatedTokens,
  });
  const readInto = (emitAnswer: EmitEvents): Promise<void> => {
    const streamed = connection.stream({ path: "/api/generate", body: request, signal });
    return readOllamaAnswer(streamed, { answer, onPiece: () => onProgress(), asInChats }, emitAnswer);
  };
  try {
    if (entry.show.isMlx) await cutAtStops({ stop: body.stop, estimatedTokens }, readInto, emit);
    else await readInto(emit);
  } catch (error) {
    if (!(error instanceof ContextOverflow)) throw error;
    throw toldOverflow(error, { param: "prompt", contextWindow, estimatedTokens });
  }
}

/**
 * Converts a line to the form of a chat. Reasoning that Ollama still separated becomes text: no client asked for
 * reasoning.
 */
function asInChats(line: unknown): unknown {
  if (typeof line !== "object" || line === null) return line;
  const { response, thinking, ...rest }: Readonly<Record<string, unknown>> = { ...line };
  const content = typeof thinking === "string" && typeof response === "string" ? thinking + response : response;
  return { ...rest, message: { content } };
}
