import type { ChatMessage } from "#shared/protocol/chat-body.ts";

/** An error in the tool calls of a conversation and their results, and the index of the message with the error. */
export type ToolDisorder =
  | { readonly kind: "answers nothing" | "same ids"; readonly place: number }
  /** Calls have no result before the message at `place`, or before the end of the conversation. */
  | { readonly kind: "left open"; readonly place: number; readonly atEnd: boolean; readonly ids: readonly string[] };

/**
 * Finds tool messages without a call, duplicate call ids, and calls without a result before the next message. Models
 * were trained only on complete pairs, and answer nonsense otherwise.
 */
export function findToolDisorder(messages: readonly ChatMessage[]): ToolDisorder | undefined {
  let asked: ReadonlySet<string> = new Set();
  let open = new Set<string>();
  for (const [place, message] of messages.entries()) {
    if (message.role === "tool") {
      if (!asked.has(message.tool_call_id)) return { kind: "answers nothing", place };
      open.delete(message.tool_call_id);
      continue;
    }
    if (open.size > 0) return { kind: "left open", place, atEnd: false, ids: [...open] };
    const calls = message.role === "assistant" ? (message.tool_calls ?? []) : [];
    asked = new Set(calls.map(({ id }) => id));
    if (asked.size < calls.length) return { kind: "same ids", place };
    open = new Set(asked);
  }
  return open.size > 0 ? { kind: "left open", place: messages.length - 1, atEnd: true, ids: [...open] } : undefined;
}

const idsShownMax = 5;

/** Joins the ids of calls for an error message, at most `idsShownMax` of them. */
export function namedCalls(ids: readonly string[]): string {
  const shown = ids.slice(0, idsShownMax).map((id) => `'${id.slice(0, 64)}'`);
  const more = ids.length > shown.length ? ` and ${ids.length - shown.length} more` : "";
  return `${shown.join(", ")}${more}`;
}
