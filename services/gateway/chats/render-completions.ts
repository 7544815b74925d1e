import type { AnswerEvent, Usage } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import { limits } from "#shared/protocol/limits.ts";
import { faultBody } from "../http/answer-faults.ts";
import type { AnswerHead, AnswerRenderer, JobOffer, StreamEnds } from "../jobs/answer-parts.ts";
import type { RenderedRequest, Rendering } from "../requests/endpoint.ts";
import type { ChatForm } from "./read-chat.ts";
import { withClientNames } from "./request-tools.ts";
import { type CompletionForm, faultWithSentNames, type SentNames } from "./runtime-fields.ts";

/** Returns usage in OpenAI's format, with details only where the runtime reports them. */
function tokenUsage(usage: Usage & { readonly cost?: number | undefined }): Record<string, unknown> {
  const { promptTokens, completionTokens, cachedTokens, reasoningTokens, cost } = usage;
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: cachedTokens === undefined ? undefined : { cached_tokens: cachedTokens },
    completion_tokens_details: reasoningTokens === undefined ? undefined : { reasoning_tokens: reasoningTokens },
    cost,
  };
}

/** Returns the rendering of a completion whose usage tells the cost, if its client asked for that. */
export function withCost({ tellsCost }: CompletionForm, { costOf }: RenderedRequest, rendering: Rendering): Rendering {
  if (!tellsCost) return rendering;
  const priced = (event: AnswerEvent): AnswerEvent =>
    event.kind === "usage" ? Object.assign({ cost: costOf(event) }, event) : event;
  return {
    ...rendering,
    render(head, offer) {
      const renderer = rendering.render(head, offer);
      return { push: (events) => renderer.push(events.map(priced)), end: (timings) => renderer.end(timings) };
    },
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

/** Returns the rendering of an answer in OpenAI's way, whose faults name fields as the client sent them. */
export function plainRendering(render: Rendering["render"], sentNames: SentNames = {}): Rendering {
  return { render, ends: endsOfChunks, adaptFault: (fault) => faultWithSentNames(fault, sentNames) };
}

/** Returns the rendering of a chat with the client's own names of tools, and of bounds that its runtime does not hold. */
export function inClientWords({ toolNames, bounds }: ChatForm, rendering: Rendering): Rendering {
  if (toolNames === undefined && bounds === undefined) return rendering;
  return {
    ...rendering,
    render: (head, offer) => withClientNames(rendering.render(head, offer), toolNames),
    unheldBy: bounds && ((offer) => unheldBounds(bounds, offer, rendering.adaptFault)),
  };
}

/** Returns the names, in the client's own words, of those bounds that the runtime of an offer does not hold. */
function unheldBounds(
  bounds: readonly string[],
  { chosen }: JobOffer,
  adaptFault: Rendering["adaptFault"],
): readonly string[] {
  // The runtime of GGUF files: its grammars know no bounds of numbers.
  if (chosen.model.runtime !== "llama") return [];
  const names = bounds.map(
    (param) => adaptFault(new Fault("unsupported_value", { message: "", param })).param ?? param,
  );
  return [...new Set(names)];
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

  constructor({ id, createdSeconds: created, model }: AnswerHead, object: string, includeUsage: boolean) {
    const constant = JSON.stringify({ id, object, created, model });
    this.open = `data: ${constant.slice(0, -1)},"choices":[`;
    this.close = includeUsage ? `],"usage":null}\n\n` : `]}\n\n`;
    this.#includeUsage = includeUsage;
  }

  abstract push(events: readonly AnswerEvent[]): Uint8Array;

  /** Returns the chunk of an event that belongs to no choice; empty when it has none. */
  protected rest(event: Exclude<AnswerEvent, ContentEvent>): string {
    if (event.kind !== "usage" || !this.#includeUsage) return "";
    return `${this.open}],"usage":${JSON.stringify(tokenUsage(event))}}\n\n`;
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
