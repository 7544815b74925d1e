import type { z } from "zod";
import type { AnswerEvent, FinishReason, TokenLogprobs, Usage } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { toolCall } from "#shared/protocol/job-bodies.ts";
import { limits } from "#shared/protocol/limits.ts";
import { faultBody } from "../../http/answer-faults.ts";
import type { AnswerHead, AnswerRenderer } from "../../jobs/answer-course.ts";
import type { MadeResponse } from "../responses/kept-responses.ts";
import type { StreamEnds } from "../../jobs/write-answer.ts";

/** Returns usage in OpenAI's format, with details only where the runtime reports them. */
function tokenUsage(usage: Usage): Record<string, unknown> {
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
  waiting: (reason) => Buffer.from(`: ${reason}\n\n`),
};

/** The rendering of answers in an outer API: a renderer for each run, the last bytes of a stream, and words of faults. */
export interface Rendering {
  readonly render: (head: AnswerHead) => AnswerRenderer;
  readonly ends: StreamEnds;
  /** The media type of an answer that is sent whole; JSON unless given. */
  readonly media?: string | undefined;
  readonly adaptFault: (fault: Fault) => Fault;
  /** Returns the answer that is to be stored, once it is complete; undefined if none is. */
  readonly made?: (() => MadeResponse | undefined) | undefined;
}

export type ContentEvent = Exclude<AnswerEvent, { kind: "usage" | "embedding" | "scores" | "audio" }>;

/** One choice of an answer that is gathered and sent as a whole. */
export interface FoldedChoice {
  /** Adds an event and returns the characters that it adds to the answer. */
  fold(event: ContentEvent): number;
  json(index: number): object;
}

const nothing = new Uint8Array();

/**
 * Renders an answer as a stream of server-sent events, each with one chunk. The writer of the stream adds `data:
 * [DONE]`, once it knows that nothing is missing.
 */
export abstract class ChunkStream implements AnswerRenderer {
  /** The beginning of every chunk, up to its choices, and the end of a chunk with choices. */
  protected readonly open: string;
  protected readonly close: string;
  readonly #includeUsage: boolean;

  constructor({ id, createdSeconds: created, model, includeUsage }: AnswerHead, object: string) {
    const constant = JSON.stringify({ id, object, created, model });
    this.open = `data: ${constant.slice(0, -1)},"choices":[`;
    this.close = includeUsage ? `],"usage":null}\n\n` : `]}\n\n`;
    this.#includeUsage = includeUsage;
  }

  /** Returns the chunk or chunks of an event; empty when it has none. */
  protected abstract chunk(event: ContentEvent): string;

  push(events: readonly AnswerEvent[]): Uint8Array {
    let text = "";
    for (const event of events) {
      if (event.kind === "usage") {
        if (this.#includeUsage) text += `${this.open}],"usage":${JSON.stringify(tokenUsage(event))}}\n\n`;
      } else if (event.kind !== "embedding" && event.kind !== "scores" && event.kind !== "audio")
        text += this.chunk(event);
    }
    return Buffer.from(text);
  }

  end(): Uint8Array {
    return nothing;
  }
}

/** The least that an event counts towards `wholeAnswerCharactersMax`: a piece of one character takes 32 bytes here. */
export const eventCharactersMin = 16;

/** Renders an answer as one object, from the same events as a stream. */
export class WholeCompletion implements AnswerRenderer {
  readonly #object: string;
  readonly #head: AnswerHead;
  readonly #begin: () => FoldedChoice;
  readonly #choices = new Map<number, FoldedChoice>();
  #characters = 0;
  #usage: Usage = { promptTokens: 0, completionTokens: 0 };

  constructor(head: AnswerHead, of: { readonly object: string; readonly begin: () => FoldedChoice }) {
    this.#head = head;
    this.#object = of.object;
    this.#begin = of.begin;
  }

  push(events: readonly AnswerEvent[]): Uint8Array {
    for (const event of events) this.#fold(event);
    assertLength(this.#characters);
    return nothing;
  }

  end(): Uint8Array {
    const { id, createdSeconds: created, model } = this.#head;
    const choices = [...this.#choices].toSorted(([a], [b]) => a - b).map(([index, choice]) => choice.json(index));
    const usage = tokenUsage(this.#usage);
    return Buffer.from(JSON.stringify({ id, object: this.#object, created, model, choices, usage }));
  }

  #fold(event: AnswerEvent): void {
    if (event.kind === "embedding" || event.kind === "scores" || event.kind === "audio") return;
    if (event.kind === "usage") {
      this.#usage = event;
      return;
    }
    const choice = this.#choices.getOrInsertComputed(event.choice ?? 0, this.#begin);
    this.#characters += Math.max(eventCharactersMin, choice.fold(event));
  }
}

/** Throws when a gathered answer, which is sent in one piece, exceeds its limit. */
export function assertLength(characters: number): void {
  if (characters <= limits.wholeAnswerCharactersMax) return;
  throw new Fault("invalid_value", {
    message: `The answer is longer than ${limits.wholeAnswerCharactersMax} characters (wholeAnswerCharactersMax); ask for it as a stream.`,
    param: "stream",
  });
}

/**
 * Renders a chat completion as a stream of `chat.completion.chunk` objects. Only the varying parts of a chunk are built
 * anew: this runs for every token.
 */
export class ChatChunks extends ChunkStream {
  /** The beginning of a chunk of the first choice, which is nearly always the only one. */
  readonly #openFirst: string;
  /** The end of a chunk without logprobs and without a finish reason. */
  readonly #closePlain: string;
  /** The beginning and the end of a chunk with a text of the first choice. */
  readonly #openText: string;
  readonly #closeText: string;
  /** The numbers of the choices that have begun. */
  readonly #begun = new Set<number>();

  constructor(head: AnswerHead) {
    super(head, "chat.completion.chunk");
    this.#openFirst = `${this.open}{"index":0,"delta":`;
    this.#closePlain = `,"logprobs":null,"finish_reason":null}${this.close}`;
    this.#openText = `${this.#openFirst}{"content":`;
    this.#closeText = `}${this.#closePlain}`;
  }

  protected override chunk(event: ContentEvent): string {
    const { choice = 0 } = event;
    return this.#begin(choice) + this.following(choice, event);
  }

  /** Returns the first chunk of a choice, or an empty text when the choice has begun. */
  #begin(choice: number): string {
    if (this.#begun.has(choice)) return "";
    this.#begun.add(choice);
    return this.delta(choice, `{"role":"assistant","content":"","refusal":null}`);
  }

  protected following(choice: number, event: ContentEvent): string {
    switch (event.kind) {
      case "text":
        if (choice === 0 && event.logprobs === undefined) {
          return this.#openText + JSON.stringify(event.text) + this.#closeText;
        }
        return this.delta(choice, `{"content":${JSON.stringify(event.text)}}`, ending(event));
      case "reasoning": {
        const text = JSON.stringify(event.text);
        return this.delta(choice, `{"reasoning_content":${text},"reasoning":${text}}`);
      }
      case "tool-call-start": {
        const { index, id, name } = event;
        const call = { index, id, type: "function", function: { name, arguments: "" } };
        return this.delta(choice, JSON.stringify({ tool_calls: [call] }));
      }
      case "tool-call-delta": {
        const call = { index: event.index, function: { arguments: event.arguments } };
        return this.delta(choice, JSON.stringify({ tool_calls: [call] }));
      }
      case "finish":
        return this.delta(choice, "{}", `,"logprobs":null,"finish_reason":"${event.reason}"}`);
    }
  }

  /** Returns a chunk with this delta. `rest` replaces the fields after the delta. */
  protected delta(choice: number, delta: string, rest?: string): string {
    const open = choice === 0 ? this.#openFirst : `${this.open}{"index":${choice},"delta":`;
    return rest === undefined ? open + delta + this.#closePlain : open + delta + rest + this.close;
  }
}

function ending({ logprobs }: Extract<AnswerEvent, { kind: "text" }>): string | undefined {
  if (logprobs === undefined) return undefined;
  return `,"logprobs":${JSON.stringify({ content: logprobs, refusal: null })},"finish_reason":null}`;
}

export function chatCompletion(head: AnswerHead, begin = (): FoldedChoice => new ChatChoice()): AnswerRenderer {
  return new WholeCompletion(head, { object: "chat.completion", begin });
}

/** The characters that a tool call counts for besides its name, id and arguments: the memory and the JSON around them. */
const callCharacters = 512;

export class ChatChoice implements FoldedChoice {
  #calls: Map<number, z.infer<typeof toolCall>> | undefined;
  #text = "";
  #reasoning = "";
  #logprobs: TokenLogprobs | undefined;
  #reason: FinishReason = "stop";

  fold(event: ContentEvent): number {
    switch (event.kind) {
      case "text":
        this.#text += event.text;
        return event.text.length + this.#join(event.logprobs);
      case "reasoning":
        this.#reasoning += event.text;
        return event.text.length;
      case "tool-call-start":
        this.#calls ??= new Map();
        this.#calls.set(event.index, {
          id: event.id ?? "",
          type: "function",
          function: { name: event.name, arguments: "" },
        });
        return callCharacters + event.name.length + (event.id?.length ?? 0);
      case "tool-call-delta": {
        const call = this.#calls?.get(event.index);
        if (call) call.function.arguments += event.arguments;
        return event.arguments.length;
      }
      case "finish":
        this.#reason = event.reason;
        return 0;
    }
  }

  /**
   * Adds logprobs and returns their length as JSON: they are many times as long as their text, and count towards the
   * limit.
   */
  #join(logprobs: TokenLogprobs | undefined): number {
    if (logprobs === undefined) return 0;
    this.#logprobs ??= [];
    for (const token of logprobs) this.#logprobs.push(token);
    return JSON.stringify(logprobs).length;
  }

  json(index: number) {
    const calls = this.#calls && [...this.#calls].toSorted(([a], [b]) => a - b).map(([, call]) => call);
    const reasoning = this.#reasoning === "" ? undefined : this.#reasoning;
    const message = {
      role: "assistant" as const,
      content: this.#text === "" && calls !== undefined ? null : this.#text,
      refusal: null,
      reasoning_content: reasoning,
      reasoning,
      tool_calls: calls,
    };
    const logprobs = this.#logprobs === undefined ? null : { content: this.#logprobs, refusal: null };
    return { index, message, logprobs, finish_reason: this.#reason };
  }
}
