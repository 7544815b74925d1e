import type { ChatMessage } from "#shared/protocol/chat-body.ts";

/** What is wrong with the calls of a conversation and their answers, and at which of its messages. */
export type ToolDisorder =
  | { readonly kind: "answers nothing" | "same ids"; readonly place: number }
  /** Calls were left open: by the message at this place, or at the very end by the last one. */
  | { readonly kind: "left open"; readonly place: number; readonly atEnd: boolean; readonly ids: readonly string[] };

/**
 * Finds where tools do not answer what was asked of them, or have not answered before somebody speaks on: models that
 * were never trained on anything else make nonsense of it.
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

/** The ids of calls, as many as an error can name. */
export function namedCalls(ids: readonly string[]): string {
  const shown = ids.slice(0, idsShownMax).map((id) => `'${id.slice(0, 64)}'`);
  const more = ids.length > shown.length ? ` and ${ids.length - shown.length} more` : "";
  return `${shown.join(", ")}${more}`;
}
