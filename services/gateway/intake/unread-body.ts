import type { IncomingHttpHeaders } from "node:http";
import type { FaultCode } from "#shared/fault/fault-code.ts";

/** Largest unused body that is read to its end, so that a simple client receives the error. */
const unprovenBytesMax = 256 * 1024;
const provenTimesLimit = 4;

/**
 * Decides what happens to the rest of a body when a request is refused before it was read. Many clients send everything
 * before they read the answer, and would only see a broken pipe. A client without a key cannot make this process read
 * much.
 */
export function unreadBody(refused: {
  readonly code: FaultCode;
  readonly headers: IncomingHttpHeaders;
  readonly bodyBytesMax: number;
}): "read-on" | "close" {
  const { code, headers, bodyBytesMax } = refused;
  // A client that sent `Expect` gets no `100 Continue`, and may send its body or not.
  if (headers["transfer-encoding"] !== undefined || headers.expect !== undefined) return "close";
  const bytes = Number(headers["content-length"] ?? 0);
  const bytesMax = code === "request_too_large" ? bodyBytesMax * provenTimesLimit : unprovenBytesMax;
  return bytes <= bytesMax ? "read-on" : "close";
}
