import { Fault } from "#shared/fault/fault.ts";
import type { ChatMessage } from "#shared/protocol/chat-body.ts";
import { findToolDisorder, namedCalls } from "../tool-disorder.ts";

/** A message, and the path in the request where it begins. */
export interface Placed {
  readonly message: ChatMessage;
  readonly param: string;
}

/** Throws a `Fault` unless each function output answers a call, and each call is answered before the next message. */
export function insistOnCallOrder(placed: readonly Placed[]): void {
  const disorder = findToolDisorder(placed.map(({ message }) => message));
  if (disorder === undefined) return;
  const param = placed[disorder.place]?.param ?? "input";
  switch (disorder.kind) {
    case "answers nothing":
      throw new Fault("tool_messages_out_of_order", {
        message:
          "A 'function_call_output' must follow the 'function_call' with the same 'call_id', before anybody speaks on.",
        param: `${param}.call_id`,
      });
    case "same ids":
      throw new Fault("invalid_value", {
        message: "Two calls in a row have the same 'call_id', so that nobody can tell which of them is answered.",
        param,
      });
    case "left open":
      throw new Fault("tool_messages_out_of_order", {
        message: `Every 'function_call' must be followed by its 'function_call_output'; without one are ${namedCalls(disorder.ids)}.`,
        param,
      });
  }
}
