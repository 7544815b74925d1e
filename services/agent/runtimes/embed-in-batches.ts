import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { EmbedRun } from "./runtime.ts";

type Embed = (run: EmbedRun) => AsyncIterable<readonly AnswerEvent[]>;

/** The most texts in one request to a runtime. Their vectors are well within the size limit of one answer. */
export const textsAtOnce = 64;

/**
 * Embeds any number of texts, one batch after the other. Checks that each text has its vector, of the requested length:
 * a runtime without support for `dimensions` ignores it.
 */
export async function* embedInBatches(embed: Embed, run: EmbedRun): AsyncGenerator<readonly AnswerEvent[]> {
  const { input, dimensions } = run.body;
  let promptTokens = 0;
  for (let from = 0; from < input.length; from += textsAtOnce) {
    run.signal.throwIfAborted();
    run.onProgress("prefill");
    const texts = input.slice(from, from + textsAtOnce);
    const vectors: AnswerEvent[] = [];
    for await (const events of embed({ ...run, body: { ...run.body, input: texts } })) {
      for (const event of events) {
        if (event.kind === "usage") promptTokens += event.promptTokens;
        if (event.kind !== "embedding") continue;
        if (dimensions !== undefined && event.vector.length !== dimensions) throw otherLength(event.vector.length);
        vectors.push({ ...event, index: from + event.index });
      }
    }
    if (vectors.length !== texts.length) throw otherCount(vectors.length, texts.length);
    yield vectors;
  }
  yield [{ kind: "usage", promptTokens, completionTokens: 0 }];
}

function otherLength(numbers: number): Fault {
  return new Fault("unsupported_parameter", {
    message: `The runtime of this model does not support 'dimensions': its vectors have ${numbers} numbers.`,
    param: "dimensions",
  });
}

function otherCount(vectors: number, texts: number): Fault {
  return new Fault("upstream_error", {
    message: "The runtime did not answer with one vector for each text.",
    internal: `${vectors} vectors for ${texts} texts`,
  });
}
