import type { IncomingMessage, ServerResponse } from "node:http";
import type { JobListener } from "./follow-frames.ts";

/** Some clients fail after so many interim responses to one request. */
export const interimResponsesMax = 8;

/** What the official clients run on that were seen to bear interim responses, as they name it. */
const bearing = new Set<unknown>(["node", "CPython"]);

/** What a proxy adds. Some take an interim response for the answer itself. */
const proxied = ["via", "x-forwarded-for", "forwarded"];

/** Whether a client was tried with interim responses, and nobody that is known stands between it and here. */
export function bearsInterim({ headers, httpVersion }: Pick<IncomingMessage, "headers" | "httpVersion">): boolean {
  return (
    httpVersion === "1.1" &&
    bearing.has(headers["x-stainless-runtime"]) &&
    proxied.every((name) => headers[name] === undefined)
  );
}

/**
 * Says «102 Processing» now and then to a client that waits for a whole answer, whose patience would end otherwise:
 * clients give up on a connection that is silent for minutes. Unlike a comment on a stream it leaves the status open.
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
