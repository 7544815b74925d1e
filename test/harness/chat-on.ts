import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { Capabilities } from "#shared/model/model.ts";
import { chatBody, type ChatBody } from "#shared/protocol/job-bodies.ts";
import { refuseIncapable } from "../../services/agent/runtimes/refuse-unsupported.ts";
import type { Runtime, Silence } from "../../services/agent/runtimes/runtime.ts";
import { batchesOf } from "./emitted.ts";

export interface ChatWish extends Partial<ChatBody> {
  readonly model: string;
  /** Short for one message of the user. */
  readonly says?: string;
}

const everything: Capabilities = { completion: true, vision: true, embedding: true, tools: true, thinking: true };

/**
 * One chat on a runtime, as an agent would ask for it: everything it yields until its end, batch by batch. The model is
 * able to do anything unless the test says what it can do.
 */
export async function* chatOn(
  runtime: Runtime,
  wish: ChatWish,
  options: {
    signal?: AbortSignal;
    onProgress?: (silence?: Silence) => void;
    capabilities?: Capabilities;
    contextWindow?: number;
  } = {},
): AsyncGenerator<readonly AnswerEvent[]> {
  const { model, says = "Hello", ...fields } = wish;
  const body = chatBody.parse({ messages: [{ role: "user", content: says }], ...fields });
  const { signal = new AbortController().signal, onProgress = () => {} } = options;
  const { capabilities = everything, contextWindow = 4_096 } = options;
  refuseIncapable({ model, capabilities, body });
  yield* batchesOf((emit) => runtime.chat({ model, capabilities, contextWindow, body, signal, onProgress }, emit));
}

export async function eventsOf(batches: AsyncIterable<readonly AnswerEvent[]>): Promise<AnswerEvent[]> {
  return (await Array.fromAsync(batches)).flat();
}

export function textOf(events: readonly AnswerEvent[]): string {
  return events.map((event) => (event.kind === "text" ? event.text : "")).join("");
}
