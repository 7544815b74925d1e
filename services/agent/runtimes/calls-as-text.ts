import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import type { ChatBody } from "#shared/protocol/chat-body.ts";

/** True if the model may call a tool. */
export function offersTools({ tools, tool_choice: choice }: ChatBody): boolean {
  return tools !== undefined && choice !== "none";
}

/**
 * Turns tool calls into text in the answer to a request that offered no tools. Most servers leave such a call in the
 * text. Some servers parse it out of the text anyway, and a client without tools does not understand calls.
 */
export class CallsAsText {
  #open: Map<number, OpenCall> | undefined;

  /** Converts a batch. Nearly all events are text, and then the batch passes unchanged. */
  push(events: readonly AnswerEvent[]): readonly AnswerEvent[] {
    if (!this.#open?.size && events.every(isNoCall)) return events;
    const open = (this.#open ??= new Map());
    return events.flatMap((event) => [...asText(event, open)]);
  }
}

function isNoCall(event: AnswerEvent): boolean {
  if (event.kind === "finish") return event.reason !== "tool_calls";
  return event.kind !== "tool-call-start" && event.kind !== "tool-call-delta";
}

interface OpenCall {
  readonly name: string;
  arguments: string;
}

/** Emits a call as a whole, once another event follows it. */
function* asText(event: AnswerEvent, open: Map<number, OpenCall>): Generator<AnswerEvent> {
  if (event.kind === "usage" || event.kind === "embedding") {
    yield event;
    return;
  }
  const choice = event.choice ?? 0;
  const call = open.get(choice);
  if (event.kind === "tool-call-delta") {
    if (call !== undefined) call.arguments += event.arguments;
    return;
  }
  if (call !== undefined) {
    open.delete(choice);
    const text = `{"name": ${JSON.stringify(call.name)}, "arguments": ${call.arguments || "{}"}}`;
    yield { kind: "text", ...(choice > 0 && { choice }), text };
  }
  if (event.kind === "tool-call-start") open.set(choice, { name: event.name, arguments: "" });
  else if (event.kind === "finish" && event.reason === "tool_calls") yield { ...event, reason: "stop" };
  else yield event;
}
