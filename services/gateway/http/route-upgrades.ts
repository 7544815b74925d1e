import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { TimedResponse, type AnswersUnderWay } from "./timed-response.ts";

/** A request to change the protocol of its connection. */
export interface Upgrade {
  readonly socket: Socket;
  /** Bytes of the new protocol that came with the request. */
  readonly head: Buffer;
  /** Takes the socket from the response, which then counts as sent. */
  take(): void;
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>();

/** The path at which requests may become WebSockets. */
interface WebSocketRoute {
  readonly path: string;
  readonly underWay: Pick<AnswersUnderWay, "countOn" | "allSent">;
}

/**
 * Hands each request for a WebSocket at this path to its route, with the same checks, errors and log line as any other
 * request. Node itself gives such a request no response.
 */
export function routeUpgrades(server: Server, route: WebSocketRoute): void {
  server.on("upgrade", (request, socket: Socket, head) => {
    socket.on("error", () => socket.destroy());
    const isRefused = asksForWebSocket(request, { elsewhereThan: route.path }) && route.underWay.countOn(socket) === 0;
    if (!isRefused && !isForWebSocket(request, route)) {
      void route.underWay.allSent(socket).then(() => serveWithoutUpgrade(server, { request, socket, head }));
      return;
    }
    const response = new TimedResponse(request);
    response.assignSocket(socket);
    response.shouldKeepAlive = false;
    response.once("finish", () => socket.destroySoon());
    const take = (): void => {
      response.detachSocket(socket);
      response.emit("close");
    };
    upgrades.set(request, { socket, head, take });
    server.emit("request", request, response);
  });
}

/** Returns true for a request that asks for a WebSocket at another path than the one that has them. */
export function asksForWebSocket(
  { url = "", headers }: IncomingMessage,
  { elsewhereThan: path }: { readonly elsewhereThan: string | undefined },
): boolean {
  return headers.upgrade?.toLowerCase() === "websocket" && url.replace(/\?.*/, "") !== path;
}

/**
 * Returns true for a request that may become a WebSocket: a GET without a body, on a connection that owes no answer to
 * an earlier request. Node serves all other requests without an upgrade. With a body or an answer before it, the
 * request's connection is not the route's alone yet.
 */
export function isForWebSocket(request: IncomingMessage, { path, underWay }: WebSocketRoute): boolean {
  const { method, url = "", headers, socket } = request;
  const asks = url.replace(/\?.*/, "") === path && headers.upgrade?.toLowerCase() === "websocket";
  const hasBody = "content-length" in headers || "transfer-encoding" in headers;
  return asks && method === "GET" && !hasBody && underWay.countOn(socket) === 0;
}

/**
 * Serves a request as if it had not asked for an upgrade. Only Node 22 needs this: later ones ask
 * `shouldUpgradeCallback` first. Java's HTTP client asks for HTTP/2 in this way with each first request.
 */
function serveWithoutUpgrade(
  server: Server,
  { request, socket, head }: { readonly request: IncomingMessage; readonly socket: Socket; readonly head: Buffer },
): void {
  if (socket.destroyed) return;
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    if (name.toLowerCase() !== "upgrade") lines.push(`${name}: ${rawHeaders[at + 1]}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]));
  server.emit(socket instanceof TLSSocket ? "secureConnection" : "connection", socket);
}

/** Returns the upgrade that a request asks for; undefined for any other request. */
export function upgradeOf(request: IncomingMessage): Upgrade | undefined {
  return upgrades.get(request);
}
