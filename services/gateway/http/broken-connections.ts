import { once } from "node:events";
import { type Server, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { type FaultCode, faultEntry, Fault } from "#shared/fault/fault.ts";
import type { Log } from "#shared/process/log.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { adoptParserError, faultBody, faultHeaders } from "./adopt-error.ts";
import type { ConnectionBound } from "./bound-connections.ts";
import { noSniffing, processingHeader } from "./timed-response.ts";
import type { AnswersUnderWay } from "./unread-answers.ts";

/** Counts connections on which no request could be read. */
export interface ConnectionMeter {
  connectionRefused(code: FaultCode): void;
  connectionClosed(bound: ConnectionBound): void;
}

/**
 * Answers connections on which no HTTP can be read any more. Requests that arrived whole before that get their answers
 * first. They ran, and their clients must not take them for refused.
 */
export class BrokenConnections {
  readonly #underWay: AnswersUnderWay;
  readonly #log: Pick<Log, "debug">;
  readonly #meter: ConnectionMeter | undefined;
  /**
   * Connections that got their answer. All later input on them fails for the same reason, and gets no second answer.
   */
  readonly #answered = new WeakSet<Socket>();

  constructor(means: {
    readonly underWay: AnswersUnderWay;
    readonly log: Pick<Log, "debug">;
    readonly meter?: ConnectionMeter | undefined;
  }) {
    this.#underWay = means.underWay;
    this.#log = means.log;
    this.#meter = means.meter;
  }

  answer(error: Error, connection: Socket): void {
    if (this.#answered.has(connection)) return;
    this.#answered.add(connection);
    const fault = adoptParserError(error);
    // The error itself holds the bytes that were read, key and prompt among them.
    this.#log.debug({ code: fault.code }, "a connection sent no HTTP that could be read");
    void this.#tell(fault, connection);
  }

  /** Refuses CONNECT requests: this is no proxy. Unsent answers to earlier requests of the connection go first. */
  refuseTunnels(server: Server): void {
    server.on("connect", (_request, connection: Socket) => {
      connection.on("error", () => undefined);
      if (this.#answered.has(connection)) return;
      this.#answered.add(connection);
      const fault = new Fault("method_not_allowed", { message: "CONNECT is not allowed: this server is not a proxy." });
      this.#log.debug({ code: fault.code }, "a connection asked to be led elsewhere");
      void this.#tell(fault, connection, { allow: "GET, HEAD, POST" });
    });
  }

  async #tell(fault: Fault, connection: Socket, headers: Readonly<Record<string, string>> = {}): Promise<void> {
    this.#meter?.connectionRefused(fault.code);
    const answers = this.#underWay.on(connection);
    const broken = answers.find(({ req }) => !req.complete);
    await Promise.all(answers.filter((answer) => answer !== broken).map(untilOut));
    if (connection.destroyed) return;
    // In the middle of an answer nothing else may be written.
    if (!connection.writable || broken?.headersSent === true) connection.destroy();
    else connection.end(rawAnswer(fault, headers));
  }
}

async function untilOut(answer: ServerResponse): Promise<void> {
  if (!answer.closed) await once(answer, "close").catch(() => undefined);
}

/**
 * Returns the whole HTTP answer, head and body, to input that never became a request. Its connection closes after it.
 */
function rawAnswer(fault: Fault, headers: Readonly<Record<string, string>> = {}): string {
  const { status } = faultEntry(fault.code);
  const body = JSON.stringify(faultBody(fault));
  const all = {
    "content-type": "application/json; charset=utf-8",
    "content-length": String(Buffer.byteLength(body)),
    "x-request-id": newToken("req_"),
    [processingHeader]: "0",
    [noSniffing[0]]: noSniffing[1],
    ...faultHeaders(fault),
    ...headers,
    connection: "close",
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  return `${[`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Error"}`, ...lines].join("\r\n")}\r\n\r\n${body}`;
}
