import { Fault } from "#shared/fault/fault.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { AnswerHead, AnswerRenderer, AnswerTimings } from "../jobs/answer-course.ts";

/** Encoding of vectors: numbers, or base64 of 32-bit floats, little-endian. */
export type VectorFormat = "float" | "base64";

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
 * Renders embeddings as a list, OpenAI's unless `words` has another, one vector for each text and in the order of the texts. The next vector in order
 * is written at once; an early vector is kept until its turn.
 */
export class EmbeddingList implements AnswerRenderer {
  readonly #words: ListWords;
  readonly #format: VectorFormat;
  readonly #early = new Map<number, string>();
  #next = 0;
  #characters = 0;
  #promptTokens = 0;

  constructor(head: AnswerHead, format: VectorFormat, words = listOfOpenAi(head)) {
    this.#words = words;
    this.#format = format;
  }

  push(events: readonly AnswerEvent[]): Uint8Array {
    let text = "";
    for (const event of events) {
      if (event.kind === "usage") this.#promptTokens = event.promptTokens;
      if (event.kind === "embedding") text += this.#add(event.index, event.vector);
    }
    return Buffer.from(text);
  }

  end(timings?: AnswerTimings): Uint8Array {
    if (this.#next === 0 || this.#early.size > 0) throw irregular(`there is no vector ${this.#next}`);
    return Buffer.from(this.#words.close(this.#promptTokens, timings));
  }

  #add(index: number, vector: readonly number[]): string {
    if (index < this.#next || this.#early.has(index)) throw irregular(`vector ${index} came twice`);
    if (!vector.every(Number.isFinite)) throw irregular(`vector ${index} holds what is no number`);
    const written = this.#format === "float" ? JSON.stringify(vector) : `"${base64(vector)}"`;
    const item = this.#words.item(index, written);
    this.#characters += item.length;
    if (this.#characters > limits.embeddingsCharactersMax) throw tooLong(this.#format);
    this.#early.set(index, item);
    return this.#due();
  }

  /** Returns all vectors that are next in order. */
  #due(): string {
    let text = "";
    for (let item = this.#early.get(this.#next); item !== undefined; item = this.#early.get(this.#next)) {
      text += (this.#next === 0 ? this.#words.open : ",") + item;
      this.#early.delete(this.#next);
      this.#next += 1;
    }
    return text;
  }
}

function base64(vector: readonly number[]): string {
  const bytes = Buffer.allocUnsafe(vector.length * 4);
  for (const [at, component] of vector.entries()) bytes.writeFloatLE(component, at * 4);
  return bytes.toString("base64");
}

/**
 * Returns the fault of overlong vectors. The same texts give the same vectors, so the client must change the request.
 */
function tooLong(format: VectorFormat): Fault {
  const remedy =
    format === "float" ? "send fewer texts at once, or ask for them as base64" : "send fewer texts at once";
  return new Fault("invalid_value", {
    message: `The vectors are longer than ${limits.embeddingsCharactersMax} characters (embeddingsCharactersMax); ${remedy}.`,
    param: "input",
  });
}

function irregular(what: string): Fault {
  return new Fault("upstream_error", { message: "The model's vectors could not be understood.", internal: what });
}
