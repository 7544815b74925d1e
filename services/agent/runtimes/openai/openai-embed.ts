import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import type { EmbedBody } from "#shared/protocol/embed-body.ts";
import { PathUnknown } from "./openai-fault.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { Embeddings } from "../runtime.ts";

const embedAnswer = z.object({
  data: z.array(z.object({ index: z.int().nonnegative().nullish(), embedding: z.array(z.number()) })),
  usage: z.object({ prompt_tokens: z.int().nonnegative().nullish() }).nullish(),
});

/** Embeds texts on `/v1/embeddings`, and returns the vectors as numbers, in the order of the texts. */
export async function openAiEmbed(means: {
  readonly model: string;
  readonly body: EmbedBody;
  readonly cacheSalt?: string | undefined;
  readonly connection: RuntimeConnection;
  readonly signal: AbortSignal;
}): Promise<Embeddings> {
  const { model, body, cacheSalt, connection, signal } = means;
  const { input, dimensions } = body;
  const question = { model, input, dimensions, encoding_format: "float", cache_salt: cacheSalt };
  const answer = await connection
    .ask(embedAnswer, { path: "/v1/embeddings", body: question, signal })
    .catch((error: unknown) => {
      throw error instanceof PathUnknown ? embedsNothing(error) : error;
    });
  return { vectors: inOrder(answer.data, input.length), promptTokens: answer.usage?.prompt_tokens ?? 0 };
}

function inOrder(data: z.infer<typeof embedAnswer>["data"], texts: number): readonly number[][] {
  const byIndex = new Map(data.map(({ index, embedding }, at) => [index ?? at, embedding]));
  const vectors = Array.from({ length: texts }, (_, index) => byIndex.get(index) ?? []);
  if (data.length === texts && vectors.every((vector) => vector.length > 0)) return vectors;
  throw new Fault("upstream_error", {
    message: "The runtime did not answer with one vector for each text.",
    internal: `${data.length} vectors for ${texts} texts`,
  });
}

function embedsNothing({ internal }: PathUnknown): Fault {
  return new Fault("unsupported_value", { message: "The model does not embed.", param: "model", internal });
}
