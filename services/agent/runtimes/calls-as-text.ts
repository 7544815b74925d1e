import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import type { ChatBody } from "#shared/protocol/chat-body.ts";

type Batches = AsyncIterable<readonly AnswerEvent[]>;

/** Whether the model may call a tool. */
export function offersTools({ tools, tool_choice: choice }: ChatBody): boolean {
  return tools !== undefined && choice !== "none";
}

/**
 * Tool calls in the answer to a request that offered none, as the text that they are then. Most servers leave a call
 * alone that nobody offered; some read it out of what the model writes all the same, and a client that sent no tools
 * knows nothing of calls.
 */
export class CallsAsText {
  #open: Map<number, OpenCall> | undefined;

  /** Whether a piece of text is given as it came, just now. */
  get passesText(): boolean {
    return this.#open === undefined || this.#open.size === 0;
  }

  /** Nearly all events are text, and then they are given as they came. */
  push(events: readonly AnswerEvent[]): readonly AnswerEvent[] {
    if (this.passesText && events.every(isNoCall)) return events;
    const open = (this.#open ??= new Map());
    return events.flatMap((event) => [...asText(event, open)]);
  }
}

/** The same of a whole answer. */
export async function* callsAsText(batches: Batches): AsyncGenerator<readonly AnswerEvent[]> {
  const calls = new CallsAsText();
  for await (const events of batches) yield calls.push(events);
}

function isNoCall(event: AnswerEvent): boolean {
  if (event.kind === "finish") return event.reason !== "tool_calls";
  return event.kind !== "tool-call-start" && event.kind !== "tool-call-delta";
}

interface OpenCall {
  readonly name: string;
  arguments: string;
}

/** A call is said as a whole, once something else follows. */
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
