import type { AnswerEvent, FinishReason, TokenLogprobs } from "#shared/protocol/answer-events.ts";
import { ChunkStream, type ContentEvent, type FoldedChoice, WholeCompletion } from "../../chats/render-completions.ts";
import type { AnswerHead, AnswerRenderer } from "../../jobs/answer-parts.ts";

/** Renders a legacy completion as a stream of `text_completion` objects. */
export class TextChunks extends ChunkStream {
  readonly #offsets = new Map<number, number>();

  constructor(head: AnswerHead, includeUsage: boolean) {
    super(head, "text_completion", includeUsage);
  }

  override push(events: readonly AnswerEvent[]): Uint8Array {
    let text = "";
    for (const event of events) {
      const { kind } = event;
      if (kind === "usage" || kind === "embedding" || kind === "scores" || kind === "audio") text += this.rest(event);
      else text += this.#chunk(event);
    }
    return Buffer.from(text);
  }

  #chunk(event: ContentEvent): string {
    if (event.kind === "text") return this.#said(event);
    if (event.kind !== "finish") return "";
    return this.#choice(event.choice ?? 0, `"",`, "null", `"${textFinish(event.reason)}"`);
  }

  #said({ choice = 0, text, logprobs }: Extract<AnswerEvent, { kind: "text" }>): string {
    const offset = this.#offsets.get(choice) ?? 0;
    this.#offsets.set(choice, offset + text.length);
    if (logprobs === undefined) return this.#choice(choice, `${JSON.stringify(text)},`, "null", "null");
    const legacy = new LegacyLogprobs();
    legacy.add(logprobs, offset);
    return this.#choice(choice, `${JSON.stringify(text)},`, JSON.stringify(legacy), "null");
  }

  #choice(index: number, text: string, logprobs: string, finish: string): string {
    return `${this.open}{"text":${text}"index":${index},"logprobs":${logprobs},"finish_reason":${finish}}${this.close}`;
  }
}

/** Returns the finish reason of a legacy completion, which has no tool calls whatever its runtime reports. */
function textFinish(reason: FinishReason): Exclude<FinishReason, "tool_calls"> {
  return reason === "tool_calls" ? "stop" : reason;
}

export function textCompletion(head: AnswerHead): AnswerRenderer {
  return new WholeCompletion(head, { object: "text_completion", begin: () => new TextChoice() });
}

class TextChoice implements FoldedChoice {
  #text = "";
  #logprobs: LegacyLogprobs | undefined;
  #reason: FinishReason = "stop";

  fold(event: ContentEvent): number {
    if (event.kind === "finish") this.#reason = event.reason;
    if (event.kind !== "text") return 0;
    const { text, logprobs } = event;
    const offset = this.#text.length;
    this.#text += text;
    if (logprobs === undefined) return text.length;
    this.#logprobs ??= new LegacyLogprobs();
    this.#logprobs.add(logprobs, offset);
    return text.length + JSON.stringify(logprobs).length;
  }

  json(index: number): object {
    return { text: this.#text, index, logprobs: this.#logprobs ?? null, finish_reason: textFinish(this.#reason) };
  }
}

/** Logprobs in the format of legacy completions: parallel lists instead of a list of objects. */
class LegacyLogprobs {
  readonly tokens: string[] = [];
  readonly token_logprobs: number[] = [];
  readonly top_logprobs: Record<string, number>[] = [];
  /** The offset of each token in the text of its choice, in characters. */
  readonly text_offset: number[] = [];

  /** Adds the tokens of a piece of text that begins at `offset`. */
  add(logprobs: TokenLogprobs, offset: number): void {
    let next = offset;
    for (const { token, logprob, top_logprobs: others } of logprobs) {
      this.tokens.push(token);
      this.token_logprobs.push(logprob);
      // The list always includes the token itself, however unlikely it was.
      this.top_logprobs.push(
        Object.fromEntries([...others, { token, logprob }].map((each) => [each.token, each.logprob])),
      );
      this.text_offset.push(next);
      next += token.length;
    }
  }
}
