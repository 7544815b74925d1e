import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import type { EmitEvents } from "./runtime.ts";

type TextEvent = Extract<AnswerEvent, { kind: "text" }>;

/** The shortest prefix to trim. A model may repeat a shorter prefix by chance at the start of its continuation. */
export const echoCharactersMin = 24;

/**
 * Drops the beginning of an answer where it repeats the prefilled text of the request. Some runtimes repeat a prefilled
 * beginning before they continue it, depending on their version.
 *
 * Text is held back only while it could still be that beginning. Other text comes out unchanged.
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

  /** Ends the answer and returns the events that were held back. */
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

/** Trims the prefix of a whole answer. A failed answer still emits the events that were held back. */
export async function trimPrefix(
  prefix: string,
  run: (emit: EmitEvents) => Promise<void>,
  emit: EmitEvents,
  { charactersMin = echoCharactersMin }: { readonly charactersMin?: number } = {},
): Promise<void> {
  if (prefix.length < charactersMin) return run(emit);
  const trimmer = new PrefixTrimmer(prefix);
  try {
    await run((events) => emit(trimmer.push(events)));
  } finally {
    await emit(trimmer.end());
  }
}

/** Returns a text event without its first characters, and without the logprobs of their tokens. */
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
