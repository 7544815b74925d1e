import type { z } from "zod";
import type { AnswerEvent, FinishReason, TokenLogprobs } from "#shared/protocol/answer-events.ts";
import type { toolCall } from "#shared/protocol/job-bodies.ts";
import type { AnswerHead, AnswerRenderer } from "../../jobs/answer-parts.ts";
import { ChunkStream, type ContentEvent, type FoldedChoice, WholeCompletion } from "../../chats/render-completions.ts";

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

  constructor(head: AnswerHead, includeUsage: boolean) {
    super(head, "chat.completion.chunk", includeUsage);
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
