import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { chatBody, type ChatBody } from "#shared/protocol/chat-body.ts";
import type { Runtime } from "../../services/agent/runtimes/runtime.ts";

export interface ChatWish extends Partial<ChatBody> {
  readonly model: string;
  /** Short for one message of the user. */
  readonly says?: string;
}

/** One chat on a runtime: everything it yields until its end, batch by batch. */
export async function* chatOn(
  runtime: Runtime,
  wish: ChatWish,
  options: { signal?: AbortSignal; onProgress?: () => void } = {},
): AsyncGenerator<readonly AnswerEvent[]> {
  const { model, says = "Hello", ...fields } = wish;
  const body = chatBody.parse({ messages: [{ role: "user", content: says }], ...fields });
  const { signal = new AbortController().signal, onProgress = () => {} } = options;
  yield* runtime.chat({ model, body, signal, onProgress });
}

export async function eventsOf(batches: AsyncIterable<readonly AnswerEvent[]>): Promise<AnswerEvent[]> {
  return (await Array.fromAsync(batches)).flat();
}

export function textOf(events: readonly AnswerEvent[]): string {
  return events.map((event) => (event.kind === "text" ? event.text : "")).join("");
}
