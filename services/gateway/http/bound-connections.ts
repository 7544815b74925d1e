import { isIPv6, type Server, type Socket } from "node:net";
import type { Clock } from "#shared/process/clock.ts";
import { LogThrottle, type Log } from "#shared/process/log.ts";
import { networkList } from "#shared/process/networks.ts";
import { KeyedCounts } from "./bound-uploads.ts";
import { networkOf, newRequestId } from "./request-state.ts";
import { type Server as HttpServer, STATUS_CODES } from "node:http";
import { type FaultCode, faultEntry, Fault } from "#shared/fault/fault.ts";
import { codeOf, faultBody, faultHeaders } from "./answer-faults.ts";
import { headersBytesMax } from "./guard-edge.ts";
import { noSniffing, processingHeader, type AnswersUnderWay } from "./timed-response.ts";

/** The bound that a new connection exceeds: of all connections, of its address, or of proxies alone. */
export type ConnectionBound = "total" | "address" | "stranger";

export interface ConnectionBounds {
  /** Connections that a server has open at once. */
  readonly connectionsMax: number;
  /** Open connections of one address. This host and trusted proxies carry many clients, and have no such limit. */
  readonly connectionsPerAddressMax: number;
  /** True if only this host and trusted proxies may connect. */
  readonly onlyProxies?: boolean;
}

/** Closes new connections above a limit, and those of strangers, at once. The log names the setting. */
export function limitConnections(
  server: Server,
  bounds: ConnectionBounds,
  dependencies: {
    readonly trustedProxies: readonly string[];
    readonly clock: Pick<Clock, "now">;
    readonly log: Pick<Log, "warn">;
    readonly meter?: { connectionClosed(bound: ConnectionBound): void } | undefined;
  },
): void {
  const { connectionsMax, connectionsPerAddressMax, onlyProxies = false } = bounds;
  const throttle = new LogThrottle(dependencies.clock);
  const unbound = networkList(["127.0.0.0/8", "::1", ...dependencies.trustedProxies]);
  const openFrom = new KeyedCounts();
  const refuse = (bound: ConnectionBound, message: string): void => {
    dependencies.meter?.connectionClosed(bound);
    if (throttle.isDue(bound)) dependencies.log.warn({ bound }, message);
  };

  server.maxConnections = connectionsMax;
  server.on("drop", () => {
    refuse("total", `new connections are closed: ${connectionsMax} are open (TRUNKLINE_CONNECTIONS_MAX)`);
  });
  server.on("connection", (socket: Socket) => {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined || unbound.check(remoteAddress, isIPv6(remoteAddress) ? "ipv6" : "ipv4")) return;
    if (onlyProxies) {
      refuse(
        "stranger",
        `connections from ${remoteAddress} are closed: it is no proxy of TRUNKLINE_TRUSTED_PROXIES, and this port has no certificate (TRUNKLINE_TLS_CERT)`,
      );
      socket.destroy();
      return;
    }
    const network = networkOf(remoteAddress);
    const open = openFrom.add(network, 1);
    socket.once("close", () => openFrom.add(network, -1));
    if (open <= connectionsPerAddressMax) return;
    refuse(
      "address",
      `new connections of one address are closed: it has ${connectionsPerAddressMax} open (TRUNKLINE_CONNECTIONS_PER_ADDRESS_MAX); a proxy in front belongs into TRUNKLINE_TRUSTED_PROXIES`,
    );
    socket.destroy();
  });
}

/** Counts connections on which no request could be read. */
export interface ConnectionMeter {
  connectionRefused(code: FaultCode): void;
  connectionClosed(bound: ConnectionBound): void;
}

interface BrokenDependencies {
  readonly underWay: AnswersUnderWay;
  readonly log: Pick<Log, "debug">;
  readonly meter?: ConnectionMeter | undefined;
}

/**
 * Answers connections on which no HTTP can be read any more. Requests that arrived whole before that get their answers
 * first. They ran, and their clients must not take them for refused.
 */
export class BrokenConnections {
  readonly #dependencies: BrokenDependencies;
  /**
   * Connections that got their answer. All later input on them fails for the same reason, and gets no second answer.
   */
  readonly #answered = new WeakSet<Socket>();

  constructor(dependencies: BrokenDependencies) {
    this.#dependencies = dependencies;
  }

  answer(error: Error, connection: Socket): void {
    // The error itself holds the bytes that were read, key and prompt among them.
    void this.#refuse(connection, adoptParserError(error), "a connection sent no HTTP that could be read");
  }

  /** Refuses CONNECT requests: this is no proxy. Unsent answers to earlier requests of the connection go first. */
  refuseTunnels(server: HttpServer): void {
    server.on("connect", ({ socket }) => {
      socket.on("error", () => undefined);
      const fault = new Fault("method_not_allowed", { message: "CONNECT is not allowed: this server is not a proxy." });
      void this.#refuse(socket, fault, "a connection asked to be led elsewhere", { allow: "GET, HEAD, POST" });
    });
  }

  async #refuse(connection: Socket, fault: Fault, event: string, headers?: Readonly<Record<string, string>>) {
    const { underWay, log, meter } = this.#dependencies;
    if (this.#answered.has(connection)) return;
    this.#answered.add(connection);
    log.debug({ code: fault.code }, event);
    meter?.connectionRefused(fault.code);
    const answers = underWay.on(connection);
    const broken = answers.find(({ req }) => !req.complete);
    await underWay.allSent(
      connection,
      answers.filter((answer) => answer !== broken),
    );
    if (connection.destroyed) return;
    // In the middle of an answer nothing else may be written.
    if (!connection.writable || broken?.headersSent === true) connection.destroy();
    else connection.end(rawAnswer(fault, headers));
  }
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
    "x-request-id": newRequestId(),
    [processingHeader]: "0",
    [noSniffing[0]]: noSniffing[1],
    ...faultHeaders(fault),
    ...headers,
    connection: "close",
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  return `${[`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Error"}`, ...lines].join("\r\n")}\r\n\r\n${body}`;
}

/** Returns the fault for an error of Node's HTTP parser, which occurs before a request exists. */
function adoptParserError(error: unknown): Fault {
  switch (codeOf(error)) {
    case "HPE_HEADER_OVERFLOW":
      return new Fault("headers_too_large", {
        message: `The request's headers are larger than ${headersBytesMax} bytes (headersBytesMax).`,
      });
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new Fault("request_timeout", { message: "The request did not arrive whole in time." });
    case undefined:
    default:
      return new Fault("bad_request", { message: "The request is not well-formed HTTP." });
  }
}
