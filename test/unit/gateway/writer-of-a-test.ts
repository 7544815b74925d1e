import type { AnswerWriter } from "../../../services/gateway/jobs/answer-parts.ts";

/** A writer without a client, which does what the test says and nothing else. */
export function writerOf(said: Partial<AnswerWriter> = {}): AnswerWriter {
  const nothing = (): void => undefined;
  return {
    onAccept: nothing,
    onContinue: nothing,
    onData: nothing,
    onLast: said.onData ?? nothing,
    onHold: nothing,
    onTick: nothing,
    hasLeft: () => false,
    unreadBytes: () => undefined,
    ...said,
  };
}
