import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { atClose } from "./timed-response.ts";

/** The answers of each connection that are not out yet, in the order of their requests. */
export class AnswersUnderWay {
  readonly #onConnection = new WeakMap<Socket, Set<ServerResponse>>();

  /** Counts an answer until it is out, or cannot come any more. */
  begin(connection: Socket, answer: ServerResponse): void {
    const answers = this.#onConnection.get(connection) ?? new Set();
    this.#onConnection.set(connection, answers.add(answer));
    atClose(answer, () => void answers.delete(answer));
  }

  on(connection: Socket): readonly ServerResponse[] {
    return [...(this.#onConnection.get(connection) ?? [])];
  }

  /** How many there are. */
  countOn(connection: Socket): number {
    return this.#onConnection.get(connection)?.size ?? 0;
  }
}
