import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { jsonLines } from "../json-lines.ts";
import type { OllamaChatAnswer } from "./ollama-chat-answer.ts";

/** What an answer says, a batch for each piece that was read. */
export async function* readOllamaAnswer(
  pieces: AsyncIterable<Uint8Array>,
  reading: {
    readonly answer: OllamaChatAnswer;
    readonly onLines: () => void;
    /** Gives a line the form of a chat's, where it has another. */
    readonly asInChats?: (line: unknown) => unknown;
  },
): AsyncGenerator<readonly AnswerEvent[]> {
  const { answer, onLines, asInChats = (line) => line } = reading;
  for await (const lines of jsonLines(pieces)) {
    onLines();
    const events: AnswerEvent[] = [];
    try {
      for (const line of lines) events.push(...answer.events(asInChats(line)));
    } finally {
      // Also when a line tells an error: what was said before it is still said.
      if (events.length > 0) yield events;
    }
  }
  yield [...answer.end()];
}
