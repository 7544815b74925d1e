import type { Usage, AnswerEvent } from "#shared/protocol/answer-events.ts";
import { faultBody } from "../http/adopt-error.ts";
import type { StreamEnds } from "../jobs/write-answer.ts";
import { Fault } from "#shared/fault/fault.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { AnswerHead, AnswerRenderer } from "../jobs/render-answer.ts";

/** Returns usage in OpenAI's format, with details only where the runtime reports them. */
export function tokenUsage(usage: Usage): Record<string, unknown> {
  const { promptTokens, completionTokens, cachedTokens, reasoningTokens } = usage;
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: cachedTokens === undefined ? undefined : { cached_tokens: cachedTokens },
    completion_tokens_details: reasoningTokens === undefined ? undefined : { reasoning_tokens: reasoningTokens },
  };
}

/**
 * The last bytes of a stream of chunks. Official clients take a stream that merely stops for a success, so a failure is
 * sent as an error event.
 */
export const endsOfChunks: StreamEnds = {
  whole: Buffer.from("data: [DONE]\n\n"),
  failed: (fault) => Buffer.from(`data: ${JSON.stringify(faultBody(fault))}\n\n`),
};

/** Events that make up a choice. */
export type Said = Exclude<AnswerEvent, { kind: "usage" | "embedding" }>;

/** One choice of an answer that is gathered and sent as a whole. */
export interface FoldedChoice {
  /** Adds an event and returns the characters that it adds to the answer. */
  fold(event: Said): number;
  /** Returns the choice in the client's format. */
  told(index: number): object;
}

const nothing = new Uint8Array();

/** The least that an event counts towards `wholeAnswerCharactersMax`: a piece of one character takes 32 bytes here. */
const eventCharactersMin = 16;

/** Renders an answer as one object, from the same events as a stream. */
export class WholeCompletion<Choice extends FoldedChoice> implements AnswerRenderer {
  readonly #object: string;
  readonly #head: AnswerHead;
  readonly #begin: () => Choice;
  /** The first choice, which is nearly always the only one, and the others by their number. */
  #first: Choice | undefined;
  #others: Map<number, Choice> | undefined;
  #characters = 0;
  #usage: Usage = { promptTokens: 0, completionTokens: 0 };

  constructor(head: AnswerHead, of: { readonly object: string; readonly begin: () => Choice }) {
    this.#head = head;
    this.#object = of.object;
    this.#begin = of.begin;
  }

  push(events: readonly AnswerEvent[]): Uint8Array {
    for (const event of events) this.#fold(event);
    insistOnLength(this.#characters);
    return nothing;
  }

  end(): Uint8Array {
    const { id, createdSeconds: created, model } = this.#head;
    const choices = this.#first === undefined ? [] : [this.#first.told(0)];
    if (this.#others !== undefined) {
      const others = [...this.#others].toSorted(([a], [b]) => a - b);
      for (const [index, choice] of others) choices.push(choice.told(index));
    }
    const usage = tokenUsage(this.#usage);
    return Buffer.from(JSON.stringify({ id, object: this.#object, created, model, choices, usage }));
  }

  #fold(event: AnswerEvent): void {
    if (event.kind === "embedding") return;
    if (event.kind === "usage") {
      this.#usage = event;
      return;
    }
    this.#characters += Math.max(eventCharactersMin, this.#choiceOf(event.choice ?? 0).fold(event));
  }

  #choiceOf(index: number): Choice {
    if (index === 0) return (this.#first ??= this.#begin());
    this.#others ??= new Map();
    return this.#others.getOrInsertComputed(index, this.#begin);
  }
}

/** Throws when a gathered answer, which is sent in one piece, exceeds its limit. */
function insistOnLength(characters: number): void {
  if (characters <= limits.wholeAnswerCharactersMax) return;
  throw new Fault("invalid_value", {
    message: `The answer is longer than ${limits.wholeAnswerCharactersMax} characters (wholeAnswerCharactersMax); ask for it as a stream.`,
    param: "stream",
  });
}
