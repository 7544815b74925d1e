import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { ContextOverflow, estimateTextTokens, toldOverflow } from "../context-overflow.ts";
import { cutAtStops } from "../cut-at-stops.ts";
import type { OllamaCatalogue } from "./ollama-catalogue.ts";
import { OllamaChatAnswer } from "./ollama-chat-answer.ts";
import { ollamaTextRequest } from "./ollama-text-request.ts";
import { readOllamaAnswer } from "./read-ollama-answer.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { CompleteRun } from "../runtime.ts";

/** Continues one text on `/api/generate`. */
export async function* ollamaText(means: {
  readonly run: CompleteRun;
  readonly connection: RuntimeConnection;
  readonly models: OllamaCatalogue;
}): AsyncGenerator<readonly AnswerEvent[]> {
  const { run, connection, models } = means;
  const { body, contextWindow, signal, onProgress } = run;
  const entry = await models.find(run.model, signal);
  const request = ollamaTextRequest(entry, body);
  const estimatedTokens = estimateTextTokens(body.prompt);
  if (!entry.loaded) onProgress("loading");
  const answer = readOllamaAnswer(connection.stream({ path: "/api/generate", body: request, signal }), {
    answer: new OllamaChatAnswer({
      parallelToolCalls: false,
      tokensMax: body.max_tokens,
      promptTokens: () => estimatedTokens,
    }),
    onLines: () => onProgress(),
    asInChats,
  });
  try {
    yield* entry.show.isMlx ? cutAtStops({ stop: body.stop, estimatedTokens }, answer) : answer;
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
