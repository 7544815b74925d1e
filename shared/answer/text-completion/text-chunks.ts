import type { AnswerEvent, FinishReason } from "../answer-event.ts";
import type { AnswerHead, AnswerRenderer } from "../answer-renderer.ts";
import { tokenUsage } from "../token-usage.ts";
import { LegacyLogprobs } from "./legacy-logprobs.ts";

/**
 * Renders a legacy completion as a stream: server-sent events with `text_completion` objects. The gateway writes `data:
 * [DONE]`, once it knows that nothing is missing.
 */
export class TextChunks implements AnswerRenderer {
  readonly #open: string;
  readonly #close: string;
  readonly #includeUsage: boolean;
  readonly #offsets = new Map<number, number>();

  constructor({ id, createdSeconds: created, model, includeUsage }: AnswerHead) {
    const constant = JSON.stringify({ id, object: "text_completion", created, model });
    this.#open = `data: ${constant.slice(0, -1)},"choices":[`;
    this.#close = includeUsage ? `],"usage":null}\n\n` : `]}\n\n`;
    this.#includeUsage = includeUsage;
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
    switch (event.kind) {
      case "text":
        return this.#said(event);
      case "finish":
        return this.#choice(event.choice ?? 0, `"",`, "null", `"${textFinish(event.reason)}"`);
      case "usage":
        return this.#includeUsage ? `${this.#open}],"usage":${JSON.stringify(tokenUsage(event))}}\n\n` : "";
      default:
        return "";
    }
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
    return `${this.#open}{"text":${text}"index":${index},"logprobs":${logprobs},"finish_reason":${finish}}${this.#close}`;
  }
}

/** Returns the finish reason of a legacy completion, which has no tool calls whatever its runtime reports. */
export function textFinish(reason: FinishReason): Exclude<FinishReason, "tool_calls"> {
  return reason === "tool_calls" ? "stop" : reason;
}
