import { z } from "zod";
import type { AnswerEvent, TokenLogprobs } from "#shared/protocol/answer-events.ts";
import { contentText, type ChatBody, type TextToContinue } from "#shared/protocol/job-bodies.ts";
import type { EmitEvents } from "./runtime.ts";
import { estimatePromptTokens } from "./runtime-faults.ts";

/** Thrown into a run whose answer is complete at a stop string, so that the runtime's request ends. */
const stopped = new Error("the answer ended at a stop string");

/**
 * Ends a single answer exactly before its first stop string, for a runtime that does not do so itself. It does not wait
 * for the runtime's own end and usage; the usage is estimated instead.
 */
export async function cutAtStops(
  body: ChatBody | TextToContinue,
  run: (emit: EmitEvents) => Promise<void>,
  emit: EmitEvents,
): Promise<void> {
  if (body.stop === undefined) return run(emit);
  const cutter = new StopCutter(body.stop);
  let pieces = 0;
  let kept: AnswerEvent[] = [];
  try {
    await run((events) => {
      if (cutter.stopped) return undefined;
      kept = [];
      for (const event of events) {
        if (event.kind === "text" || event.kind === "reasoning") pieces += 1;
        kept.push(...cutEvent(event, cutter));
        if (cutter.stopped) throw stopped;
      }
      return emit(kept);
    });
  } catch (error) {
    if (error !== stopped) throw error;
    const promptTokens = estimatePromptTokens(body);
    await emit([
      ...kept,
      { kind: "finish", reason: "stop", stop: cutter.found },
      { kind: "usage", promptTokens, completionTokens: pieces },
    ]);
  }
}

/** Emits text that was held back as a possible beginning of a stop string, once another event follows. */
function* cutEvent(event: AnswerEvent, cutter: StopCutter): Generator<AnswerEvent> {
  const text = event.kind === "text" ? cutter.push(event.text) : event.kind === "reasoning" ? "" : cutter.end();
  if (text !== "") yield { kind: "text", text };
  if (event.kind !== "text") yield event;
}

/**
 * Cuts a text that comes in pieces exactly before the first stop string in it, however the pieces are split. A stop
 * string may span pieces. The end of the text so far is held back while it could be the beginning of a stop string.
 */
export class StopCutter {
  readonly #stops: readonly string[];
  #held = "";
  found: string | undefined;

  constructor(stops: readonly string[]) {
    this.#stops = stops;
  }

  /** True if a stop string was found. No text comes out after it. */
  get stopped(): boolean {
    return this.found !== undefined;
  }

  /** Takes the next piece and returns the text that now certainly belongs to the answer. */
  push(piece: string): string {
    if (this.#stops.length === 0) return piece;
    if (this.stopped) return "";
    const text = this.#held + piece;
    const cut = this.#firstStop(text);
    if (cut !== undefined) {
      this.found = cut.stop;
      this.#held = "";
      return text.slice(0, cut.from);
    }
    const heldFrom = this.#possibleStop(text);
    this.#held = text.slice(heldFrom);
    return text.slice(0, heldFrom);
  }

  /** Ends the text and returns the part that was held back. */
  end(): string {
    const rest = this.#held;
    this.#held = "";
    return rest;
  }

  /** Returns the stop string that is complete first, as if the text came character by character, and its start. */
  #firstStop(text: string): { readonly stop: string; readonly from: number } | undefined {
    const found = this.#stops
      .map((stop) => ({ stop, from: text.indexOf(stop) }))
      .filter(({ from }) => from >= 0)
      .sort((a, b) => a.from + a.stop.length - (b.from + b.stop.length) || a.from - b.from);
    return found[0];
  }

  /** Returns the start of the longest end of the text that is also the beginning of a stop string. */
  #possibleStop(text: string): number {
    const longest = Math.max(...this.#stops.map((stop) => stop.length)) - 1;
    for (let from = Math.max(0, text.length - longest); from < text.length; from++) {
      const end = text.slice(from);
      if (this.#stops.some((stop) => stop.startsWith(end))) return from;
    }
    return text.length;
  }
}

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

/**
 * Returns the beginning of the answer from the last message of a chat, if it has one. The model's template decides if
 * the model continues it or answers anew.
 */
export function prefilledText({ messages }: ChatBody): string {
  const last = messages.at(-1);
  return last?.role === "assistant" && last.tool_calls === undefined ? contentText(last.content) : "";
}

/** Trims the prefix of a whole answer. A failed answer still emits the events that were held back. */
export async function trimPrefix(
  prefix: string,
  run: (emit: EmitEvents) => Promise<void>,
  emit: EmitEvents,
): Promise<void> {
  if (prefix.length < echoCharactersMin) return run(emit);
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

/** True if the model may call a tool. */
export function offersTools({ tools, tool_choice: choice }: ChatBody): boolean {
  return tools !== undefined && choice !== "none";
}

/** The text of a tool call, as most servers leave it in the answer to a request that offered no tools. */
export function callAsText(name: string, args: string): string {
  return `{"name": ${JSON.stringify(name)}, "arguments": ${args || "{}"}}`;
}

const runtimeLogprob = z.object({
  token: z.string(),
  logprob: z.number(),
  bytes: z
    .array(z.int())
    .nullish()
    .transform((bytes) => bytes ?? null),
});

/** Logprobs in OpenAI's form, of which runtimes omit parts. */
export const runtimeLogprobs = z.array(
  runtimeLogprob.extend({
    top_logprobs: z
      .array(runtimeLogprob)
      .nullish()
      .transform((others) => others ?? []),
  }),
);

/** Logprobs in the form of chats. */
const inChats = z.object({ content: runtimeLogprobs });

/** Logprobs in the form of completions: parallel lists, and the alternatives in no order. */
const sideBySide = z.object({
  tokens: z.array(z.string()).min(1),
  token_logprobs: z.array(z.number()),
  top_logprobs: z.array(z.record(z.string(), z.number()).nullable()).nullish(),
});

/**
 * Returns the logprobs of a piece in the form of chats, with at most `alternatives` alternatives for each token. Some
 * servers send the form of chats for completions.
 */
export function logprobsIn(value: unknown, alternatives: number): TokenLogprobs | undefined {
  const chat = inChats.safeParse(value);
  if (chat.success && chat.data.content.length > 0) {
    return chat.data.content.map((token) => ({ ...token, top_logprobs: token.top_logprobs.slice(0, alternatives) }));
  }
  const lists = sideBySide.safeParse(value);
  if (!lists.success) return undefined;
  const { tokens, token_logprobs: likelihoods, top_logprobs: others } = lists.data;
  return tokens.flatMap((token, at) => {
    const logprob = likelihoods[at];
    if (logprob === undefined) return [];
    return [{ token, logprob, bytes: null, top_logprobs: likeliest(others?.[at] ?? {}, alternatives) }];
  });
}

function likeliest(others: Readonly<Record<string, number>>, count: number): TokenLogprobs[number]["top_logprobs"] {
  return Object.entries(others)
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, count)
    .map(([token, logprob]) => ({ token, logprob, bytes: null }));
}
