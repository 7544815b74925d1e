import { faultEntry, type Fault, type FieldNames } from "#shared/fault/fault.ts";
import type { FaultShape } from "../../http/request-state.ts";

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

/** Maps the path of a chat field, as machines name it, to the field of the Messages API that it came from. */
const fieldsOfChats: FieldNames = [
  [/^messages(?:$|\[.*)/, "messages"],
  [/^stop(?:$|\[.*)/, "stop_sequences"],
  [/^response_format.*/, "output_config.format"],
  [/^reasoning_effort$/, "output_config.effort"],
  [/^parallel_tool_calls$/, "tool_choice.disable_parallel_tool_use"],
  [/^tools\[.*/, "tools"],
];

/** Matches the numbers of an overflow, as runtimes' adapters write it. */
const overflow =
  /maximum context length is (\d+) tokens.* (\d+) (?:\(estimated\) )?tokens(?:,.* (\d+) of 'max_tokens')?/;

/**
 * Renames the field in a machine's fault, and writes an overflow of the window in Anthropic's words: clients recognise
 * them, and shorten their conversations.
 */
export function faultForMessages(fault: Fault): Fault {
  const renamed = fault.withFieldOf(fieldsOfChats);
  const [, window, prompt, answer] =
    fault.code === "context_length_exceeded" ? (overflow.exec(fault.message) ?? []) : [];
  if (window === undefined) return renamed;
  const words =
    answer === undefined
      ? `prompt is too long: ${prompt} tokens > ${window} maximum`
      : `input length and \`max_tokens\` exceed context limit: ${prompt} + ${answer} > ${window}, decrease input length or \`max_tokens\` and try again`;
  return renamed.with({ message: `${words}. ${renamed.message}` });
}
