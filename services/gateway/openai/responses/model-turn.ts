import type { ChatMessage } from "#shared/protocol/chat-body.ts";
import { innerName } from "./function-names.ts";
import { textOf, type CallItem, type InputItem, type MessageItem, type ReasoningItem } from "./input-items.ts";

type AssistantMessage = Extract<ChatMessage, { role: "assistant" }>;
type ToolCalls = NonNullable<AssistantMessage["tool_calls"]>;

/** An item that comes from the model. Several of them in a row are one turn. */
export type ModelItem = ReasoningItem | CallItem | (MessageItem & { readonly role: "assistant" });

export function isOfModel(item: InputItem): item is ModelItem {
  return "role" in item ? item.role === "assistant" : item.type !== "function_call_output";
}

/**
 * One turn of the model. Its reasoning, texts and calls are separate items in this API, and become one message to a
 * model.
 */
export class ModelTurn {
  readonly #thoughts: string[] = [];
  readonly #texts: string[] = [];
  readonly #calls: ToolCalls = [];

  add(item: ModelItem): void {
    switch (item.type) {
      case "reasoning":
        // Some clients send the reasoning in full, some its summary, some neither.
        for (const { text } of item.content?.length ? item.content : (item.summary ?? [])) this.#thoughts.push(text);
        return;
      case "function_call": {
        const { call_id: id, arguments: given } = item;
        this.#calls.push({ id, type: "function", function: { name: innerName(item), arguments: given } });
        return;
      }
      default:
        this.#texts.push(typeof item.content === "string" ? item.content : item.content.map(textOf).join(""));
    }
  }

  /** Returns the turn's message. Returns undefined when the turn is empty, as with encrypted reasoning only. */
  message(): AssistantMessage | undefined {
    if (this.#texts.length + this.#thoughts.length + this.#calls.length === 0) return undefined;
    const message: AssistantMessage = { role: "assistant" };
    if (this.#texts.length > 0 || this.#calls.length === 0) message.content = this.#texts.join("\n\n");
    if (this.#thoughts.length > 0) message.reasoning_content = this.#thoughts.join("\n\n");
    if (this.#calls.length > 0) message.tool_calls = this.#calls;
    return message;
  }
}
