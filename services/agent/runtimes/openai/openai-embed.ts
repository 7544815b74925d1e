import { z } from "zod";
import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { EmbedBody } from "#shared/protocol/embed-body.ts";
import { PathUnknown } from "./openai-fault.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";

/** How many texts are sent at once: the vectors of as many are well within what is read of one answer. */
export const embedTextsAtOnce = 64;

const embedAnswer = z.object({
  data: z.array(z.object({ index: z.int().nonnegative().nullish(), embedding: z.array(z.number()) })),
  usage: z.object({ prompt_tokens: z.int().nonnegative().nullish() }).nullish(),
});

/** Vectors by `/v1/embeddings`, as numbers, in the order of the texts. */
export async function* openAiEmbed(means: {
  readonly model: string;
  readonly body: EmbedBody;
  readonly connection: RuntimeConnection;
  readonly signal: AbortSignal;
  readonly onProgress: () => void;
}): AsyncGenerator<readonly AnswerEvent[]> {
  const { model, body, connection, signal, onProgress } = means;
  const { dimensions } = body;
  let promptTokens = 0;
  for (let from = 0; from < body.input.length; from += embedTextsAtOnce) {
    const input = body.input.slice(from, from + embedTextsAtOnce);
    const question = { model, input, dimensions, encoding_format: "float" };
    const answer = await connection
      .ask(embedAnswer, { path: "/v1/embeddings", body: question, signal })
      .catch((error: unknown) => {
        throw error instanceof PathUnknown ? embedsNothing(error) : error;
      });
    onProgress();
    promptTokens += answer.usage?.prompt_tokens ?? 0;
    const vectors = inOrder(answer.data, input.length);
    if (dimensions !== undefined) refuseOtherLengths(vectors, dimensions);
    yield vectors.map((vector, index) => ({ kind: "embedding", index: from + index, vector }));
  }
  yield [{ kind: "usage", promptTokens, completionTokens: 0 }];
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

/** A server that knows nothing of `dimensions` ignores it. */
function refuseOtherLengths(vectors: readonly (readonly number[])[], dimensions: number): void {
  if (vectors.every((vector) => vector.length === dimensions)) return;
  throw new Fault("unsupported_parameter", {
    message: `The runtime of this model does not support 'dimensions': its vectors have ${vectors[0]?.length ?? 0} numbers.`,
    param: "dimensions",
  });
}
