import type { FinishReason, TokenLogprobs } from "../answer-event.ts";
import type { FoldedChoice, Said } from "../whole-completion.ts";

interface ToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; arguments: string };
}

/** One choice of a chat completion, assembled from its events. */
export class ChatChoice implements FoldedChoice {
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
        return 0;
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
