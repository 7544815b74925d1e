import { Fault } from "#shared/fault/fault.ts";
import type { ChatMessage } from "#shared/protocol/chat-body.ts";
import { findToolDisorder, namedCalls } from "./tool-disorder.ts";

/** Throws a `Fault` unless each tool message answers a call, and each call is answered before the next message. */
export function checkToolOrder(messages: readonly ChatMessage[]): void {
  const disorder = findToolDisorder(messages);
  if (disorder === undefined) return;
  const { kind, place } = disorder;
  const at = `messages[${place}]`;
  switch (kind) {
    case "answers nothing":
      throw new Fault("tool_messages_out_of_order", {
        message:
          "A message with the role 'tool' must follow the assistant's message that made the call, and name it in its 'tool_call_id'.",
        param: `${at}.role`,
      });
    case "same ids":
      throw new Fault("invalid_value", {
        message: "Two calls of one message have the same 'id', so that nobody can tell which of them is answered.",
        param: `${at}.tool_calls`,
      });
    case "left open":
      throw new Fault("tool_messages_out_of_order", {
        message: `Every call of a tool must be answered by a message with the role 'tool' right after it; without an answer are ${namedCalls(disorder.ids)}.`,
        param: disorder.atEnd ? at : `${at}.role`,
      });
  }
}
