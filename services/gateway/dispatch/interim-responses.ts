import type { IncomingMessage, ServerResponse } from "node:http";
import type { JobListener } from "./follow-frames.ts";

/** Limits the interim responses to one request: some clients fail after this many. */
export const interimResponsesMax = 8;

/**
 * Runtimes of the official clients that were tested to accept interim responses, by their `x-stainless-runtime` header.
 */
const bearing = new Set<unknown>(["node", "CPython"]);

/** Headers that a proxy adds. Some proxies take an interim response for the answer itself. */
const proxied = ["via", "x-forwarded-for", "forwarded"];

/** True if the client was tested with interim responses, and no known proxy stands between it and this gateway. */
export function bearsInterim({ headers, httpVersion }: Pick<IncomingMessage, "headers" | "httpVersion">): boolean {
  return (
    httpVersion === "1.1" &&
    bearing.has(headers["x-stainless-runtime"]) &&
    proxied.every((name) => headers[name] === undefined)
  );
}

/**
 * Sends «102 Processing» now and then to a client that waits for a whole answer. Clients give up on a connection that
 * is silent for minutes. Unlike a comment on a stream, an interim response leaves the status open.
 */
export function interimResponses(
  response: Pick<ServerResponse, "writeProcessing" | "headersSent" | "destroyed">,
  intervalMs: number,
): Pick<JobListener, "onTick"> {
  let said = 0;
  let saidAtMs: number | undefined;
  return {
    onTick(nowMs) {
      saidAtMs ??= nowMs;
      if (said >= interimResponsesMax || nowMs - saidAtMs < intervalMs) return;
      if (response.headersSent || response.destroyed) return;
      said += 1;
      saidAtMs = nowMs;
      response.writeProcessing();
    },
  };
}
