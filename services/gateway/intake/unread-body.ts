import type { IncomingHttpHeaders } from "node:http";
import type { FaultCode } from "#shared/fault/fault-code.ts";

/** How much of a body that will not be used is read to its end, so that a simple client hears why. */
const unprovenBytesMax = 256 * 1024;
const provenTimesLimit = 4;

/**
 * What to do with the rest of a body when a request is refused before it was read. Many clients send everything before
 * they look for an answer, and would only see a broken pipe; but nobody without a key makes this process read much.
 */
export function unreadBody(refused: {
  readonly code: FaultCode;
  readonly headers: IncomingHttpHeaders;
  readonly bodyBytesMax: number;
}): "read-on" | "close" {
  const { code, headers, bodyBytesMax } = refused;
  // Whoever waits to be asked for the body is not, and may send it or not.
  if (headers["transfer-encoding"] !== undefined || headers.expect !== undefined) return "close";
  const bytes = Number(headers["content-length"] ?? 0);
  const bytesMax = code === "request_too_large" ? bodyBytesMax * provenTimesLimit : unprovenBytesMax;
  return bytes <= bytesMax ? "read-on" : "close";
}
