import { Fault } from "../fault/fault.ts";
import { limits } from "../protocol/limits.ts";
import type { AnswerEvent, FinishReason, Usage } from "./answer-event.ts";
import type { AnswerHead, AnswerRenderer } from "./answer-renderer.ts";
import { chatUsage } from "./chat-usage.ts";

interface ToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; arguments: string };
}

const nothing = new Uint8Array();

/** A chat completion as one `chat.completion` object: the same events as a stream's, folded. */
export class ChatCompletion implements AnswerRenderer {
  readonly #head: AnswerHead;
  readonly #calls = new Map<number, ToolCall>();
  #text = "";
  #reasoning = "";
  #characters = 0;
  #reason: FinishReason = "stop";
  #usage: Usage = { promptTokens: 0, completionTokens: 0 };

  constructor(head: AnswerHead) {
    this.#head = head;
  }

  push(events: readonly AnswerEvent[]): Uint8Array {
    for (const event of events) this.#fold(event);
    if (this.#characters > limits.wholeAnswerCharactersMax) {
      throw new Fault("upstream_error", {
        message: `The answer is longer than ${limits.wholeAnswerCharactersMax} characters (wholeAnswerCharactersMax); ask for it as a stream.`,
      });
    }
    return nothing;
  }

  end(): Uint8Array {
    const calls = [...this.#calls.entries()].toSorted(([a], [b]) => a - b).map(([, call]) => call);
    const message = {
      role: "assistant",
      content: this.#text === "" && calls.length > 0 ? null : this.#text,
      refusal: null,
      ...(this.#reasoning === "" ? {} : { reasoning_content: this.#reasoning, reasoning: this.#reasoning }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    };
    const { id, createdSeconds: created, model } = this.#head;
    return Buffer.from(
      JSON.stringify({
        id,
        object: "chat.completion",
        created,
        model,
        choices: [{ index: 0, message, logprobs: null, finish_reason: this.#reason }],
        usage: chatUsage(this.#usage),
      }),
    );
  }

  #fold(event: AnswerEvent): void {
    switch (event.kind) {
      case "text":
        this.#text += event.text;
        this.#characters += event.text.length;
        return;
      case "reasoning":
        this.#reasoning += event.text;
        this.#characters += event.text.length;
        return;
      case "tool-call-start":
        this.#calls.set(event.index, {
          id: event.id ?? "",
          type: "function",
          function: { name: event.name, arguments: "" },
        });
        return;
      case "tool-call-delta": {
        const call = this.#calls.get(event.index);
        if (call) call.function.arguments += event.arguments;
        this.#characters += event.arguments.length;
        return;
      }
      case "finish":
        this.#reason = event.reason;
        return;
      case "usage": {
        const { kind: _, ...usage } = event;
        this.#usage = usage;
      }
    }
  }
}
