import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Fault } from "#shared/fault/fault.ts";
import type { Clock, Timer } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { atClose, TimedResponse } from "./timed-response.ts";

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

const kib = 1024;

/** Bytes that all answers together may hold in this process: those that wait for clients, and whole ones that grow. */
export const answerBytesMax = 512 * kib * kib;
/**
 * A stalled client gets one more `clientStallMs` for each of these many waiting bytes. A large piece shows no progress
 * while the client reads it.
 */
const stallBytes = 512 * kib;
const lookEveryMs = 250;

/** Why an answer was cut: its client stalled, or all answers held too many bytes. */
export type CutReason = "stall" | "room";

/** Measures the bytes that answers hold, and counts cut answers. */
export interface AnswerMeter {
  answersHold(bytes: number): void;
  answerCut(reason: CutReason): void;
}

export interface AnswerBounds {
  /** A client is cut off when it reads nothing of its waiting answer for this long. */
  readonly clientStallMs: number;
  readonly bytesMax?: number;
}

interface Means extends AnswerBounds {
  readonly underWay: AnswersUnderWay;
  readonly clock: Pick<Clock, "now" | "every">;
  readonly log: Pick<Log, "warn">;
  readonly meter?: AnswerMeter | undefined;
}

interface Waiting {
  readonly socket: Socket;
  readonly answers: readonly ServerResponse[];
  readonly bytes: number;
}

/**
 * Bounds the memory that answers hold. A timer looks at all connections a few times a second, so every way of writing
 * is included. These are whole answers, streams, lists, and the rest of an answer whose job has ended.
 */
export class UnreadAnswers {
  readonly #means: Means;
  /** Progress of the client of each connection with waiting bytes: the bytes that it had taken, and when. */
  readonly #taken = new WeakMap<Socket, { readonly bytes: number; readonly atMs: number }>();
  #looking: Timer | undefined;

  constructor(means: Means) {
    this.#means = means;
  }

  start(): void {
    this.#looking = this.#means.clock.every(lookEveryMs, () => this.#look());
  }

  stop(): void {
    this.#looking?.cancel();
  }

  #look(): void {
    const { underWay, clock, meter, bytesMax = answerBytesMax, clientStallMs } = this.#means;
    const nowMs = clock.now();
    const all: Waiting[] = [];
    for (const [socket, answers] of underWay.all()) {
      if (answers.length > 0) all.push({ socket, answers: [...answers], bytes: sumOf(answers) });
    }
    for (const waiting of all) {
      if (this.#isStalled(waiting.socket, nowMs)) {
        this.#cut(waiting, "stall", `The client took nothing of the answer for ${clientStallMs} ms (clientStallMs).`);
      }
    }
    let held = all.reduce((sum, { bytes }) => sum + bytes, 0);
    meter?.answersHold(held);
    if (held <= bytesMax) return;
    for (const waiting of all.toSorted((one, other) => other.bytes - one.bytes)) {
      if (held <= bytesMax) return;
      held -= waiting.bytes;
      this.#cut(
        waiting,
        "room",
        `All answers together hold more than ${bytesMax} bytes (answerBytesMax), and this one the most of them.`,
      );
    }
  }

  #isStalled(socket: Socket, nowMs: number): boolean {
    const waitingBytes = socket.writableLength;
    if (waitingBytes === 0) {
      this.#taken.delete(socket);
      return false;
    }
    const bytes = socket.bytesWritten - waitingBytes;
    const before = this.#taken.get(socket);
    if (before?.bytes !== bytes) {
      this.#taken.set(socket, { bytes, atMs: nowMs });
      return false;
    }
    const waits = 1 + Math.floor(waitingBytes / stallBytes);
    return nowMs - before.atMs > this.#means.clientStallMs * waits;
  }

  /**
   * Aborts the answers of a connection. A request whose answer has no status yet gets a fault; otherwise the connection
   * is destroyed.
   */
  #cut({ socket, answers, bytes }: Waiting, reason: CutReason, message: string): void {
    const { log, meter } = this.#means;
    const isBegun = answers.some(({ headersSent }) => headersSent);
    const fault = new Fault(isBegun ? "slow_client" : "server_is_overloaded", { message });
    meter?.answerCut(reason);
    const requests = answers.map((answer) => (answer instanceof TimedResponse ? answer.requestId : undefined));
    log.warn({ code: fault.code, requests, bytes }, `an answer was cut: ${message}`);
    for (const answer of answers) if (answer instanceof TimedResponse) answer.leaving?.abort(fault);
    // Destroys the socket later, so that the code that still works on the request sees the fault first.
    if (isBegun) setImmediate(() => socket.destroy());
  }
}

function sumOf(answers: readonly ServerResponse[]): number {
  let bytes = 0;
  for (const answer of answers) {
    bytes += answer.writableLength + (answer instanceof TimedResponse ? answer.keptBytes : 0);
  }
  return bytes;
}
