import type { AnswerEvent, FinishReason, TokenLogprobs } from "#shared/protocol/answer-events.ts";
import { tokenUsage, WholeCompletion, type FoldedChoice, type Said } from "./answer-renderer.ts";
import type { AnswerHead, AnswerRenderer } from "../jobs/render-answer.ts";

/**
 * Renders a chat completion as a stream: server-sent events with `chat.completion.chunk` objects. The writer of the
 * stream adds `data: [DONE]`, once it knows that nothing is missing.
 *
 * Only the varying parts of a chunk are built anew: this runs for every token.
 */
export class ChatChunks implements AnswerRenderer {
  readonly #open: string;
  /** The beginning of a chunk of the first choice, which is nearly always the only one. */
  readonly #openFirst: string;
  readonly #close: string;
  /** The end of a chunk without logprobs and without a finish reason. */
  readonly #closePlain: string;
  /** The beginning and the end of a chunk with a text of the first choice. */
  readonly #openText: string;
  readonly #closeText: string;
  readonly #includeUsage: boolean;
  /** True if the first choice has begun; and the numbers of the other choices that have begun. */
  #firstBegun = false;
  #othersBegun: Set<number> | undefined;

  constructor(head: AnswerHead) {
    const { id, createdSeconds: created, model } = head;
    const constant = JSON.stringify({ id, object: "chat.completion.chunk", created, model });
    this.#open = `data: ${constant.slice(0, -1)},"choices":[`;
    this.#close = head.includeUsage ? `],"usage":null}\n\n` : `]}\n\n`;
    this.#openFirst = `${this.#open}{"index":0,"delta":`;
    this.#closePlain = `,"logprobs":null,"finish_reason":null}${this.#close}`;
    this.#openText = `${this.#openFirst}{"content":`;
    this.#closeText = `}${this.#closePlain}`;
    this.#includeUsage = head.includeUsage;
  }

  push(events: readonly AnswerEvent[]): Uint8Array {
    let text = "";
    for (const event of events) text += this.#chunk(event);
    return Buffer.from(text);
  }

  end(): Uint8Array {
    return new Uint8Array();
  }

  #chunk(event: AnswerEvent): string {
    if (event.kind === "embedding") return "";
    if (event.kind === "usage") {
      return this.#includeUsage ? `${this.#open}],"usage":${JSON.stringify(tokenUsage(event))}}\n\n` : "";
    }
    const { choice = 0 } = event;
    return this.#begin(choice) + this.#following(choice, event);
  }

  /** Returns the first chunk of a choice, or an empty text when the choice has begun. */
  #begin(choice: number): string {
    if (choice === 0 ? this.#firstBegun : this.#othersBegun?.has(choice)) return "";
    if (choice === 0) this.#firstBegun = true;
    else this.#othersBegun = (this.#othersBegun ?? new Set()).add(choice);
    return this.#delta(choice, `{"role":"assistant","content":"","refusal":null}`);
  }

  #following(choice: number, event: Said): string {
    switch (event.kind) {
      case "text":
        if (choice === 0 && event.logprobs === undefined) {
          return this.#openText + JSON.stringify(event.text) + this.#closeText;
        }
        return this.#delta(choice, `{"content":${JSON.stringify(event.text)}}`, ending(event));
      case "reasoning": {
        const text = JSON.stringify(event.text);
        return this.#delta(choice, `{"reasoning_content":${text},"reasoning":${text}}`);
      }
      case "tool-call-start": {
        const { index, id, name } = event;
        const call = { index, id, type: "function", function: { name, arguments: "" } };
        return this.#delta(choice, JSON.stringify({ tool_calls: [call] }));
      }
      case "tool-call-delta": {
        const call = { index: event.index, function: { arguments: event.arguments } };
        return this.#delta(choice, JSON.stringify({ tool_calls: [call] }));
      }
      case "finish":
        return this.#delta(choice, "{}", `,"logprobs":null,"finish_reason":"${event.reason}"}`);
    }
  }

  /** Returns a chunk with this delta. `told` replaces the fields after the delta. */
  #delta(choice: number, delta: string, told?: string): string {
    const open = choice === 0 ? this.#openFirst : `${this.#open}{"index":${choice},"delta":`;
    return told === undefined ? open + delta + this.#closePlain : open + delta + told + this.#close;
  }
}

function ending({ logprobs }: Extract<AnswerEvent, { kind: "text" }>): string | undefined {
  if (logprobs === undefined) return undefined;
  return `,"logprobs":${JSON.stringify({ content: logprobs, refusal: null })},"finish_reason":null}`;
}

/** Renders a chat completion as one `chat.completion` object. */
export function chatCompletion(head: AnswerHead): AnswerRenderer {
  return new WholeCompletion(head, { object: "chat.completion", begin: () => new ChatChoice() });
}

interface ToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; arguments: string };
}

/** The characters that a tool call counts for besides its name, id and arguments: the memory and the JSON around them. */
const callCharacters = 512;

/** One choice of a chat completion, assembled from its events. */
class ChatChoice implements FoldedChoice {
  #calls: Map<number, ToolCall> | undefined;
  #text = "";
  #reasoning = "";
  #logprobs: TokenLogprobs | undefined;
  #reason: FinishReason = "stop";

  fold(event: Said): number {
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

  told(index: number): object {
    const calls = this.#calls && [...this.#calls].toSorted(([a], [b]) => a - b).map(([, call]) => call);
    const reasoning = this.#reasoning === "" ? undefined : this.#reasoning;
    const message = {
      role: "assistant",
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
