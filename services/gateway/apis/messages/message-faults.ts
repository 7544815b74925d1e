import { faultEntry, type Fault } from "#shared/fault/fault.ts";
import type { FaultShape } from "../../http/answer-faults.ts";

/** Anthropic's status of an overload. Its clients wait longer after it than after a 503. */
const overloaded = 529;

/** Returns the status of a fault as the Messages API has it. */
export function messageStatus({ code }: Pick<Fault, "code">): number {
  return code === "server_is_overloaded" ? overloaded : faultEntry(code).status;
}

/** Anthropic's types of errors, by the status. Any other status below 500 is an invalid request. */
const types: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  504: "timeout_error",
  [overloaded]: "overloaded_error",
};

/** Anthropic's SDK reads this where it asked for a thread that its server keeps, and sends the whole conversation then. */
const noThread = { error_code: "thread_unsupported_request", unsupported: ["thread"] } as const;

/** Returns Anthropic's error body, with the code and the path of Trunkline's faults beside its own fields. */
export function messageFaultBody(fault: Fault, requestId: string) {
  const status = messageStatus(fault);
  const type = types[status] ?? (status < 500 ? "invalid_request_error" : "api_error");
  const { message, param = null } = fault;
  const { wire: code = fault.code } = faultEntry(fault.code);
  const details = param === "thread" ? { details: noThread } : {};
  return { type: "error" as const, error: { type, message, code, param, ...details }, request_id: requestId };
}

/** The shape of errors at the paths of this API, and for its clients at any other path. */
export const messageFaults: FaultShape = {
  prefix: "/v1/messages",
  header: "anthropic-version",
  idHeader: "request-id",
  body: messageFaultBody,
  status: messageStatus,
};
