import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { jsonLines } from "../json-lines.ts";
import type { OllamaChatAnswer } from "./ollama-chat-answer.ts";

/** Yields the events of an answer, one batch for each piece that was read. */
export async function* readOllamaAnswer(
  pieces: AsyncIterable<Uint8Array>,
  reading: {
    readonly answer: OllamaChatAnswer;
    readonly onLines: () => void;
    /** Converts a line of another form to the form of a chat. */
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
      // Events before a line with an error are still yielded.
      if (events.length > 0) yield events;
    }
  }
  yield [...answer.end()];
}
