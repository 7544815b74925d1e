import { Fault } from "#shared/fault/fault.ts";
import type { ChatMessage } from "#shared/protocol/job-bodies.ts";

/** A text for an error, and the field of the message that it names, as the end of a path. */
type OrderError = readonly [text: string, field: string];

/** The errors of tool messages in the words of an outer API. The ids of calls follow the text of `noResult`. */
export interface ToolOrderErrors {
  readonly noCall: OrderError;
  readonly sameIds: OrderError;
  readonly noResult: OrderError;
}

/**
 * Throws a `Fault` for a tool message without a call, for duplicate ids of calls, and for a call without a result before
 * the next message. Models were trained only on complete pairs, and answer nonsense otherwise. `paramAt` returns the path
 * in the request where a message begins.
 */
export function insistOnToolOrder(
  messages: readonly ChatMessage[],
  { noCall, sameIds, noResult }: ToolOrderErrors,
  paramAt: (place: number) => string,
): void {
  let asked: ReadonlySet<string> = new Set();
  let open = new Set<string>();
  for (const [place, message] of messages.entries()) {
    if (message.role === "tool") {
      if (!asked.has(message.tool_call_id)) {
        throw new Fault("tool_messages_out_of_order", { message: noCall[0], param: paramAt(place) + noCall[1] });
      }
      open.delete(message.tool_call_id);
      continue;
    }
    if (open.size > 0) throw leftOpen(open, noResult[0], paramAt(place) + noResult[1]);
    const calls = message.role === "assistant" ? (message.tool_calls ?? []) : [];
    asked = new Set(calls.map(({ id }) => id));
    if (asked.size < calls.length) {
      throw new Fault("invalid_value", { message: sameIds[0], param: paramAt(place) + sameIds[1] });
    }
    open = new Set(asked);
  }
  if (open.size > 0) throw leftOpen(open, noResult[0], paramAt(messages.length - 1));
}

const idsShownMax = 5;

function leftOpen(open: ReadonlySet<string>, text: string, param: string): Fault {
  const ids = [...open];
  const shown = ids.slice(0, idsShownMax).map((id) => `'${id.slice(0, 64)}'`);
  const more = ids.length > shown.length ? ` and ${ids.length - shown.length} more` : "";
  return new Fault("tool_messages_out_of_order", { message: `${text} ${shown.join(", ")}${more}.`, param });
}
