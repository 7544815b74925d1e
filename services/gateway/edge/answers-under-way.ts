import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { atClose } from "./timed-response.ts";

/** Unsent answers of each connection, in the order of their requests. */
export class AnswersUnderWay {
  readonly #onConnection = new Map<Socket, ServerResponse[]>();

  /** Counts an answer until it is sent or its connection has closed. */
  begin(connection: Socket, answer: ServerResponse): void {
    let answers = this.#onConnection.get(connection);
    if (answers === undefined) {
      answers = [];
      this.#onConnection.set(connection, answers);
      connection.once("close", () => this.#onConnection.delete(connection));
    }
    const all = answers;
    all.push(answer);
    // A connection nearly always has only one answer.
    atClose(answer, () => void all.splice(all.indexOf(answer), 1));
  }

  all(): Iterable<readonly [Socket, readonly ServerResponse[]]> {
    return this.#onConnection;
  }

  on(connection: Socket): readonly ServerResponse[] {
    return [...(this.#onConnection.get(connection) ?? [])];
  }

  /** Returns the number of unsent answers of a connection. */
  countOn(connection: Socket): number {
    return this.#onConnection.get(connection)?.length ?? 0;
  }
}
