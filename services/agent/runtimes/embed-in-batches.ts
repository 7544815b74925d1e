import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { EmbedRun, EmitEvents, Runtime } from "./runtime.ts";

/** The most texts in one request to a runtime. Their vectors are well within the size limit of one answer. */
export const textsAtOnce = 64;

/**
 * Embeds any number of texts, one batch after the other, and emits one `embedding` event for each text. Checks that each text has its vector, of the requested length:
 * a runtime without support for `dimensions` ignores it.
 */
export async function embedInBatches(
  embed: NonNullable<Runtime["embed"]>,
  run: EmbedRun,
  emit: EmitEvents,
): Promise<void> {
  const { input, dimensions } = run.body;
  let promptTokens = 0;
  for (let from = 0; from < input.length; from += textsAtOnce) {
    run.signal.throwIfAborted();
    run.onProgress("prefill");
    const texts = input.slice(from, from + textsAtOnce);
    const embedded = await embed({ ...run, body: { ...run.body, input: texts } });
    promptTokens += embedded.promptTokens;
    const { vectors } = embedded;
    if (vectors.length !== texts.length) throw otherCount(vectors.length, texts.length);
    const wrong = vectors.find((vector) => dimensions !== undefined && vector.length !== dimensions);
    if (wrong !== undefined) throw otherLength(wrong.length);
    await emit(vectors.map((vector, at): AnswerEvent => ({ kind: "embedding", index: from + at, vector })));
  }
  await emit([
    { kind: "finish", reason: "stop" },
    { kind: "usage", promptTokens, completionTokens: 0 },
  ]);
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
