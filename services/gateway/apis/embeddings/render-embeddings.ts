import { Fault } from "#shared/fault/fault.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { AnswerHead, AnswerRenderer, AnswerTimings } from "../../jobs/answer-parts.ts";
import type { VectorFormat } from "./embeddings-request.ts";

/** The JSON around the vectors in an outer API. */
export interface ListWords {
  readonly open: string;
  item(index: number, vector: string): string;
  close(promptTokens: number, timings: AnswerTimings | undefined): string;
}

function listOfOpenAi({ model }: AnswerHead): ListWords {
  return {
    open: `{"object":"list","data":[`,
    item: (index, vector) => `{"object":"embedding","index":${index},"embedding":${vector}}`,
    close: (tokens) =>
      `],${JSON.stringify({ model, usage: { prompt_tokens: tokens, total_tokens: tokens } }).slice(1)}`,
  };
}

/**
 * Renders embeddings as a list, OpenAI's unless `words` has another, one vector for each text and in the order of the texts. The
 * next vector in order is written at once; an early vector is kept until its turn.
 */
export function embeddingList(head: AnswerHead, format: VectorFormat, words = listOfOpenAi(head)): AnswerRenderer {
  const early = new Map<number, string>();
  let next = 0;
  let characters = 0;
  let promptTokens = 0;

  function add(index: number, vector: readonly number[]): void {
    if (index < next || early.has(index)) throw irregular(`vector ${index} came twice`);
    if (!vector.every(Number.isFinite)) throw irregular(`vector ${index} holds what is no number`);
    const item = words.item(index, format === "float" ? JSON.stringify(vector) : `"${base64(vector)}"`);
    characters += item.length;
    if (characters > limits.embeddingsCharactersMax) throw tooLong(format);
    early.set(index, item);
  }

  /** Returns all vectors that are next in order. */
  function takeNext(): string {
    let text = "";
    for (let item = early.get(next); item !== undefined; item = early.get(next)) {
      text += (next === 0 ? words.open : ",") + item;
      early.delete(next);
      next += 1;
    }
    return text;
  }

  return {
    push(events) {
      for (const event of events) {
        if (event.kind === "usage") promptTokens = event.promptTokens;
        if (event.kind === "embedding") add(event.index, event.vector);
      }
      return Buffer.from(takeNext());
    },
    end(timings) {
      if (next === 0 || early.size > 0) throw irregular(`there is no vector ${next}`);
      return Buffer.from(words.close(promptTokens, timings));
    },
  };
}

/** Returns 32-bit floats, little-endian as on every processor that Node runs on. */
function base64(vector: readonly number[]): string {
  return Buffer.from(Float32Array.from(vector).buffer).toString("base64");
}

/** Returns the fault of overlong vectors. The same texts give the same vectors, so the client must change the request. */
function tooLong(format: VectorFormat): Fault {
  const remedy = `send fewer texts at once${format === "float" ? ", or ask for them as base64" : ""}`;
  const message = `The vectors are longer than ${limits.embeddingsCharactersMax} characters (embeddingsCharactersMax); ${remedy}.`;
  return new Fault("invalid_value", { message, param: "input" });
}

function irregular(what: string): Fault {
  return new Fault("upstream_error", { message: "The model's vectors could not be understood.", internal: what });
}
