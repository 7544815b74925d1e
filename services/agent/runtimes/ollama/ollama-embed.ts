import { z } from "zod";
import { ContextOverflow, estimateTextTokens, toldOverflow } from "../context-overflow.ts";
import type { OllamaCatalogue } from "./ollama-catalogue.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { EmbedRun, Embeddings } from "../runtime.ts";

const embedAnswer = z.object({
  embeddings: z.array(z.array(z.number())),
  prompt_eval_count: z.int().nonnegative().nullish(),
});

/** Embeds texts on `/api/embed`. A text that is too long is refused. By default Ollama would cut it silently. */
export async function ollamaEmbed(means: {
  readonly run: EmbedRun;
  readonly connection: RuntimeConnection;
  readonly models: OllamaCatalogue;
}): Promise<Embeddings> {
  const { run, connection, models } = means;
  const { body, signal, onProgress } = run;
  const { name, loaded } = await models.find(run.model, signal);
  if (!loaded) onProgress("loading");
  const { input, dimensions } = body;
  const question = { model: name, input, dimensions, truncate: false };
  const answer = await connection
    .ask(embedAnswer, { path: "/api/embed", body: question, signal })
    .catch((error: unknown) => {
      if (!(error instanceof ContextOverflow)) throw error;
      const estimatedTokens = Math.max(...input.map(estimateTextTokens));
      throw toldOverflow(error, { param: "input", contextWindow: run.contextWindow, estimatedTokens });
    });
  return { vectors: answer.embeddings, promptTokens: answer.prompt_eval_count ?? 0 };
}
