import { Fault } from "#shared/fault/fault.ts";
import type { ChatMessage } from "#shared/protocol/chat-body.ts";

const idsShownMax = 5;

/**
 * Insists that tools answer what was asked of them, and that they have answered before anybody speaks on: models that
 * were never trained on anything else make nonsense of it.
 */
export function checkToolOrder(messages: readonly ChatMessage[]): void {
  let asked: ReadonlySet<string> = new Set();
  let open = new Set<string>();
  for (const [place, message] of messages.entries()) {
    if (message.role === "tool") {
      if (!asked.has(message.tool_call_id)) throw answersNothing(place);
      open.delete(message.tool_call_id);
      continue;
    }
    if (open.size > 0) throw leftOpen(`messages[${place}].role`, open);
    const calls = message.role === "assistant" ? (message.tool_calls ?? []) : [];
    asked = new Set(calls.map(({ id }) => id));
    if (asked.size < calls.length) throw sameIds(place);
    open = new Set(asked);
  }
  if (open.size > 0) throw leftOpen(`messages[${messages.length - 1}]`, open);
}

function answersNothing(place: number): Fault {
  return new Fault("tool_messages_out_of_order", {
    message:
      "A message with the role 'tool' must follow the assistant's message that made the call, and name it in its 'tool_call_id'.",
    param: `messages[${place}].role`,
  });
}

function sameIds(place: number): Fault {
  return new Fault("invalid_value", {
    message: "Two calls of one message have the same 'id', so that nobody can tell which of them is answered.",
    param: `messages[${place}].tool_calls`,
  });
}

function leftOpen(param: string, open: ReadonlySet<string>): Fault {
  const ids = [...open].slice(0, idsShownMax).map((id) => `'${id.slice(0, 64)}'`);
  const more = open.size > ids.length ? ` and ${open.size - ids.length} more` : "";
  return new Fault("tool_messages_out_of_order", {
    message: `Every call of a tool must be answered by a message with the role 'tool' right after it; without an answer are ${ids.join(", ")}${more}.`,
    param,
  });
}
