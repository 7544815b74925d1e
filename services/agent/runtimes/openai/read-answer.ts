import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import { ContextOverflow } from "../context-overflow.ts";
import { readStream, SentEvents, type SentEvent } from "../read-stream.ts";
import type { Question, RuntimeConnection } from "../runtime-connection.ts";
import type { ChatRun, EmitEvents } from "../runtime.ts";
import type { OpenAiAnswer } from "./openai-answer.ts";
import type { OpenAiProfile } from "./openai-profile.ts";

interface AnswerRequest {
  readonly question: Question;
  readonly connection: RuntimeConnection;
  readonly profile: OpenAiProfile;
  readonly run: Pick<ChatRun, "contextWindow" | "onProgress">;
  /** Called for an answer that ended in `[DONE]` without a finish reason. */
  readonly onBareEnd?: (() => void) | undefined;
}

/** Sends the request and emits the answer as it comes. An answer that is incomplete at its end has failed. */
export async function readAnswer(answer: OpenAiAnswer, request: AnswerRequest, emit: EmitEvents): Promise<void> {
  const { profile, run, onBareEnd } = request;
  const { contextWindow, onProgress } = run;
  const body = request.connection.stream(request.question);
  let isAlive = false;
  const read = (event: SentEvent, events: AnswerEvent[]): void => {
    isAlive ||= isSignOfLife(event);
    refuseTooLong(event, { profile, contextWindow });
    answer.read(event, events);
  };
  const onPiece = (): void => {
    onProgress(isAlive && !answer.hasOutput ? "prefill" : undefined);
    isAlive = false;
    if (answer.isOver) body.complete();
  };
  await readStream(body, { splitter: new SentEvents(), read, onPiece }, emit);
  if (!answer.isComplete) throw await incompleteFault(answer, request);
  if (answer.endedBare) onBareEnd?.();
  refuseUnread(answer, contextWindow);
}

async function incompleteFault({ hasOutput }: OpenAiAnswer, request: AnswerRequest): Promise<Fault> {
  if (!hasOutput && request.profile.failsSilently) await findReason(request);
  return new Fault("upstream_error", {
    message: "The runtime ended its answer before it was complete.",
    internal: hasOutput
      ? "the stream ended without a finish_reason or [DONE]"
      : "the stream ended before it said anything",
  });
}

/** Requests a single token without a stream. The refusal has the status and the reason that the stream lacked. */
async function findReason({ question, connection }: AnswerRequest): Promise<void> {
  const whole = { ...Object(question.body), stream: false, stream_options: undefined, max_tokens: 1 };
  await connection.text({ ...question, body: whole });
}

/** True if an event only shows that the server is at work, such as its progress in the prompt. */
function isSignOfLife(event: SentEvent): boolean {
  return event.kind === "comment" || event.data.includes('"prompt_progress"');
}

/** Fails the answer once the server reports a prompt over the window, for a server that takes prompts of any length. */
function refuseTooLong(event: SentEvent, by: { profile: OpenAiProfile; contextWindow: number }): void {
  const promptTokens = event.kind === "comment" ? by.profile.promptTokensIn?.(event.text) : undefined;
  if (promptTokens === undefined || promptTokens <= by.contextWindow) return;
  throw new ContextOverflow({ promptTokens }, "the runtime began to read a prompt longer than the window");
}

/**
 * Refuses an empty answer to a prompt over the window: some servers read only the part that fits, and report success.
 */
function refuseUnread({ hasOutput, promptTokens = 0 }: OpenAiAnswer, contextWindow: number): void {
  if (hasOutput || promptTokens <= contextWindow) return;
  throw new ContextOverflow({ promptTokens }, "the runtime answered nothing to a prompt longer than the window");
}
