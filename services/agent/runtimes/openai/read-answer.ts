import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
import { ContextOverflow } from "../context-overflow.ts";
import type { OpenAiProfile } from "./openai-profile.ts";
import type { Question, RuntimeConnection } from "../runtime-connection.ts";
import type { ChatRun } from "../runtime.ts";
import { serverSentEvents, type SentEvent } from "../server-sent-events.ts";

/** One streamed answer as it is read, whatever it is an answer to. */
export interface StreamedAnswer {
  readonly said: boolean;
  readonly over: boolean;
  readonly done: boolean;
  readonly promptTokens: number | undefined;
  events(event: SentEvent): Iterable<AnswerEvent>;
}

/** Asks, and yields what the answer says as it comes. One that is not complete when it ends has failed. */
export async function* readAnswer(
  answer: StreamedAnswer,
  asking: {
    readonly question: Question;
    readonly connection: RuntimeConnection;
    readonly profile: OpenAiProfile;
    readonly run: Pick<ChatRun, "contextWindow" | "onProgress">;
  },
): AsyncGenerator<readonly AnswerEvent[]> {
  const { question, connection, profile } = asking;
  const { contextWindow, onProgress } = asking.run;
  const body = connection.stream(question);
  for await (const batch of serverSentEvents(body)) {
    const events: AnswerEvent[] = [];
    try {
      for (const event of batch) refuseTooLong(event, { profile, contextWindow });
      for (const event of batch) for (const said of answer.events(event)) events.push(said);
    } finally {
      // Also when an event tells an error: what was said before it is still said.
      onProgress(answer.said || !batch.some(isSignOfLife) ? undefined : "prefill");
      if (events.length > 0) yield events;
    }
    if (!answer.over) continue;
    body.complete();
    break;
  }
  if (!answer.done) {
    throw new Fault("upstream_error", { message: "The runtime ended its answer before it was complete." });
  }
  refuseUnread(answer, contextWindow);
}

/** Whether an event only says that the server is at work, such as how far it has read the prompt. */
function isSignOfLife(event: SentEvent): boolean {
  return event.kind === "comment" || event.data.includes('"prompt_progress"');
}

/** A server that would read a prompt of any length is left as soon as it says how long this one is. */
function refuseTooLong(event: SentEvent, by: { profile: OpenAiProfile; contextWindow: number }): void {
  const promptTokens = event.kind === "comment" ? by.profile.promptTokensIn?.(event.text) : undefined;
  if (promptTokens === undefined || promptTokens <= by.contextWindow) return;
  throw new ContextOverflow({ promptTokens }, "the runtime began to read a prompt longer than the window");
}

/** Some servers read no more of a prompt than fits, answer nothing, and call that a success. */
function refuseUnread({ said, promptTokens = 0 }: StreamedAnswer, contextWindow: number): void {
  if (said || promptTokens <= contextWindow) return;
  throw new ContextOverflow({ promptTokens }, "the runtime answered nothing to a prompt longer than the window");
}
