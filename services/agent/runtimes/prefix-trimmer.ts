import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import type { Answering } from "./answering.ts";

type TextEvent = Extract<AnswerEvent, { kind: "text" }>;

/** A shorter beginning may well come again by chance, as the first thing that a model says to go on. */
export const echoCharactersMin = 24;

/**
 * Drops the beginning of an answer where that repeats what the request had already said for the model. Some runtimes
 * say a prefilled beginning once more before they go on from it, and whether they do depends on their version.
 *
 * Text is held back only while it could still be that beginning; text that turns out to be none comes out unchanged.
 */
export class PrefixTrimmer {
  readonly #prefix: string;
  #held: TextEvent[] = [];
  #heldText = "";
  #decided: boolean;

  constructor(prefix: string) {
    this.#prefix = prefix;
    this.#decided = prefix === "";
  }

  push(events: readonly AnswerEvent[]): readonly AnswerEvent[] {
    return this.#decided ? events : events.flatMap((event) => this.#take(event));
  }

  /** The answer is over: gives what was held back. */
  end(): readonly AnswerEvent[] {
    const held = this.#held;
    this.#held = [];
    this.#decided = true;
    return held;
  }

  #take(event: AnswerEvent): readonly AnswerEvent[] {
    if (this.#decided) return [event];
    if (event.kind === "tool-call-start" || event.kind === "finish") return [...this.end(), event];
    if (event.kind !== "text") return [event];
    const before = this.#heldText.length;
    this.#heldText += event.text;
    if (this.#heldText.startsWith(this.#prefix)) {
      this.#held = [];
      this.#decided = true;
      return withoutStart(event, this.#prefix.length - before);
    }
    this.#held.push(event);
    return this.#prefix.startsWith(this.#heldText) ? [] : this.end();
  }
}

/** Trims what a whole answer says. */
export function trimPrefix(
  prefix: string,
  batches: Answering,
  { charactersMin = echoCharactersMin }: { readonly charactersMin?: number } = {},
): Answering {
  return prefix.length < charactersMin ? batches : trimmed(new PrefixTrimmer(prefix), batches);
}

async function* trimmed(
  trimmer: PrefixTrimmer,
  batches: AsyncIterable<readonly AnswerEvent[]>,
): AsyncGenerator<readonly AnswerEvent[]> {
  try {
    for await (const events of batches) yield trimmer.push(events);
  } catch (error) {
    // Also of an answer that fails: what was held back was said.
    yield trimmer.end();
    throw error;
  }
  yield trimmer.end();
}

/** A text event without its first characters, and without what was said of the tokens that they were. */
function withoutStart(event: TextEvent, characters: number): readonly TextEvent[] {
  const text = event.text.slice(characters);
  if (text === "") return [];
  if (event.logprobs === undefined) return [{ ...event, text }];
  let from = 0;
  const logprobs = event.logprobs.filter(({ token }) => {
    const kept = from >= characters;
    from += token.length;
    return kept;
  });
  return [{ ...event, text, logprobs }];
}
