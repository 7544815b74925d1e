import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { atClose } from "./timed-response.ts";

/** The answers of each connection that are not out yet, in the order of their requests. */
export class AnswersUnderWay {
  readonly #onConnection = new WeakMap<Socket, ServerResponse[]>();

  /** Counts an answer until it is out, or cannot come any more. */
  begin(connection: Socket, answer: ServerResponse): void {
    let answers = this.#onConnection.get(connection);
    if (answers === undefined) {
      answers = [];
      this.#onConnection.set(connection, answers);
    }
    const all = answers;
    all.push(answer);
    // Nearly always it is the only one.
    atClose(answer, () => void all.splice(all.indexOf(answer), 1));
  }

  on(connection: Socket): readonly ServerResponse[] {
    return [...(this.#onConnection.get(connection) ?? [])];
  }

  /** How many there are. */
  countOn(connection: Socket): number {
    return this.#onConnection.get(connection)?.length ?? 0;
  }
}
