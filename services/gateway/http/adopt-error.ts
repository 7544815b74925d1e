import { Fault, type FaultCode, faultEntry } from "#shared/fault/fault.ts";
import { headersBytesMax } from "./framing-fault.ts";
import type { IncomingHttpHeaders } from "node:http";

/** The size limit of a request's body, and the name by which the operator knows that limit. */
export interface BodyLimit {
  readonly bodyBytesMax: number;
  readonly bodyLimitName: string;
}

/**
 * Returns the fault for a thrown error: the framework's own refusals by their codes. Anything else is a `Fault` already
 * or a bug.
 */
export function adoptError(thrown: unknown, limit: BodyLimit): Fault {
  switch (codeOf(thrown)) {
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return new Fault("request_too_large", {
        message: `The request's body is larger than ${limit.bodyBytesMax} bytes (${limit.bodyLimitName}).`,
      });
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return new Fault("unsupported_media_type", { message: "Send the request with Content-Type: application/json." });
    case "FST_ERR_CTP_INVALID_CONTENT_LENGTH":
      return new Fault("bad_request", { message: "The request's body is not as long as its Content-Length says." });
    case "FST_ERR_BAD_URL":
      return new Fault("bad_request", { message: "The request's URL is not well formed." });
    case "FST_ERR_MAX_PARAM_LENGTH":
      return new Fault("uri_too_long", { message: "The request's URL is too long." });
    case "FST_ERR_ROUTE_METHOD_NOT_SUPPORTED":
    case "FST_ERR_NOT_FOUND":
      return new Fault("unknown_url", { message: "There is nothing here for this method." });
    case undefined:
    default:
      return refusedByFramework(thrown) ?? Fault.from(thrown);
  }
}

/** Returns `bad_request` for any other refusal that the framework itself blames on the request. */
function refusedByFramework(thrown: unknown): Fault | undefined {
  const isItsOwn = codeOf(thrown)?.startsWith("FST_ERR_") === true;
  const status: unknown = Reflect.get(Object(thrown), "statusCode");
  if (!isItsOwn || typeof status !== "number" || status < 400 || status >= 500) return undefined;
  return new Fault("bad_request", { message: "The request is not one that this server can read." });
}

/** Returns the fault for an error of Node's HTTP parser, which occurs before a request exists. */
export function adoptParserError(error: unknown): Fault {
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

function codeOf(thrown: unknown): string | undefined {
  return thrown instanceof Error && "code" in thrown && typeof thrown.code === "string" ? thrown.code : undefined;
}

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

/** OpenAI's error body. It always has these four keys. */
export interface FaultBody {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string | null;
  };
}

export function faultBody(fault: Fault): FaultBody {
  const { type, wire } = faultEntry(fault.code);
  const code = wire === undefined ? fault.code : wire;
  return { error: { message: fault.message, type, param: fault.param ?? null, code } };
}

/** Returns the headers that official clients read beside the body: how long to wait, and whether to retry at all. */
export function faultHeaders(fault: Fault): Record<string, string> {
  const { status, retry, retryAfterSeconds } = faultEntry(fault.code);
  const waitSeconds = fault.retryAfterSeconds ?? retryAfterSeconds;
  return {
    ...(waitSeconds === undefined ? {} : { "retry-after": String(waitSeconds) }),
    ...(retry === false ? { "x-should-retry": "false" } : {}),
    ...(status === 401 ? { "www-authenticate": "Bearer" } : {}),
  };
}
