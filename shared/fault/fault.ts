/**
 * The closed list of failures that Trunkline expects. There are no other codes: an unlisted failure is a bug and
 * becomes `internal_error`.
 *
 * `wire` is the code that a client receives where it differs from the name (OpenAI sends null for broken JSON). `retry`
 * false means that the same request would fail the same way, so official clients are told not to repeat it.
 */
interface FaultEntry {
  readonly status: number;
  readonly type: string;
  readonly wire?: string | null;
  readonly retry?: false;
  readonly retryAfterSeconds?: number;
}

const invalid = "invalid_request_error";
const unavailable = "service_unavailable_error";
const server = "server_error";

export const faultCodes = {
  // Errors in the request itself
  bad_request: { status: 400, type: invalid },
  invalid_json: { status: 400, type: invalid, wire: null },
  missing_required_parameter: { status: 400, type: invalid },
  invalid_type: { status: 400, type: invalid },
  invalid_value: { status: 400, type: invalid },
  integer_below_min_value: { status: 400, type: invalid },
  integer_above_max_value: { status: 400, type: invalid },
  decimal_below_min_value: { status: 400, type: invalid },
  decimal_above_max_value: { status: 400, type: invalid },
  string_too_long: { status: 400, type: invalid },
  empty_array: { status: 400, type: invalid },
  array_above_max_length: { status: 400, type: invalid },
  unsupported_parameter: { status: 400, type: invalid },
  unsupported_value: { status: 400, type: invalid },
  tool_messages_out_of_order: { status: 400, type: invalid, wire: null },
  context_length_exceeded: { status: 400, type: invalid },
  model_does_not_support_tools: { status: 400, type: invalid },
  key_invalid: { status: 401, type: invalid, retry: false },
  key_expired: { status: 401, type: invalid, retry: false },
  insufficient_permissions: { status: 403, type: "permission_error", retry: false },
  model_not_found: { status: 404, type: invalid },
  key_not_found: { status: 404, type: invalid },
  machine_not_found: { status: 404, type: invalid },
  keep_not_found: { status: 404, type: invalid },
  price_not_found: { status: 404, type: invalid },
  team_not_found: { status: 404, type: invalid },
  person_not_found: { status: 404, type: invalid },
  alert_not_found: { status: 404, type: invalid },
  route_not_found: { status: 404, type: invalid },
  request_not_found: { status: 404, type: invalid },
  response_not_found: { status: 404, type: invalid, retry: false },
  answer_not_found: { status: 404, type: invalid, retry: false },
  session_not_found: { status: 404, type: invalid },
  unknown_url: { status: 404, type: invalid },
  method_not_allowed: { status: 405, type: invalid },
  upgrade_refused: { status: 426, type: invalid, retry: false },
  request_timeout: { status: 408, type: invalid, retry: false },
  key_change_refused: { status: 409, type: invalid, retry: false },
  machine_change_refused: { status: 409, type: invalid, retry: false },
  keep_change_refused: { status: 409, type: invalid, retry: false },
  price_change_refused: { status: 409, type: invalid, retry: false },
  team_change_refused: { status: 409, type: invalid, retry: false },
  person_change_refused: { status: 409, type: invalid, retry: false },
  alert_change_refused: { status: 409, type: invalid, retry: false },
  route_change_refused: { status: 409, type: invalid, retry: false },
  idempotency_key_reused: { status: 409, type: invalid, retry: false },
  idempotency_key_in_use: { status: 409, type: invalid },
  idempotency_keys_used_up: { status: 429, type: "requests", retryAfterSeconds: 30 },
  request_too_large: { status: 413, type: invalid },
  uri_too_long: { status: 414, type: invalid },
  unsupported_media_type: { status: 415, type: invalid },
  expectation_failed: { status: 417, type: invalid },
  upgrade_required: { status: 426, type: invalid },
  headers_too_large: { status: 431, type: invalid },
  client_closed: { status: 499, type: invalid },
  cancelled_by_operator: { status: 403, type: "permission_error", retry: false },

  // A machine that wants to be paired
  challenge_invalid: { status: 403, type: invalid, retry: false },
  join_invalid: { status: 403, type: invalid, retry: false },
  join_expired: { status: 410, type: invalid, retry: false },
  join_used: { status: 409, type: invalid, retry: false },
  machine_key_used: { status: 409, type: invalid, retry: false },
  machine_unknown: { status: 403, type: invalid, retry: false },
  machine_revoked: { status: 403, type: invalid, retry: false },
  wrong_proof: { status: 403, type: invalid, retry: false },
  direct_unavailable: { status: 409, type: invalid, retry: false },
  machine_name_used: { status: 409, type: invalid, retry: false },
  machines_unavailable: { status: 503, type: unavailable, retry: false, retryAfterSeconds: 30 },

  // A key over its limits. The type and the message name the limit.
  rate_limit_requests: { status: 429, type: "requests", wire: "rate_limit_exceeded" },
  rate_limit_tokens: { status: 429, type: "tokens", wire: "rate_limit_exceeded" },
  rate_limit_loads: { status: 429, type: "requests", wire: "rate_limit_exceeded" },
  loads_not_allowed: { status: 403, type: invalid, wire: "insufficient_permissions", retry: false },
  concurrency_limit_exceeded: { status: 429, type: "requests" },
  insufficient_quota: { status: 429, type: "insufficient_quota", retry: false },

  // Trunkline's side: the machines, their runtimes and the connections to them
  internal_error: { status: 500, type: server, retry: false },
  upstream_error: { status: 502, type: server },
  agent_disconnected: { status: 502, type: server },
  poison_request: { status: 502, type: server, retry: false },
  stream_gap: { status: 502, type: server },
  agent_offline: { status: 503, type: unavailable, retryAfterSeconds: 5 },
  runtime_offline: { status: 503, type: unavailable, retryAfterSeconds: 5 },
  model_loading: { status: 503, type: unavailable, retryAfterSeconds: 10 },
  server_is_overloaded: { status: 503, type: unavailable, retryAfterSeconds: 2 },
  backend_unavailable: { status: 503, type: unavailable, retryAfterSeconds: 1 },
  auth_unavailable: { status: 503, type: unavailable, retryAfterSeconds: 1 },
  shutting_down: { status: 503, type: unavailable, retryAfterSeconds: 1 },
  upstream_timeout: { status: 504, type: server, retry: false },

  // Between gateway and agent; a client sees them only as the outcome of its own request
  cancelled: { status: 499, type: invalid },
  slow_client: { status: 499, type: invalid },
  job_unknown: { status: 502, type: server },
  job_moved: { status: 502, type: server },

  // In records and books only: nobody was left to tell a client
  gateway_lost: { status: 502, type: server },
} as const satisfies Record<string, FaultEntry>;

export type FaultCode = keyof typeof faultCodes;

export function isFaultCode(code: string): code is FaultCode {
  return Object.hasOwn(faultCodes, code);
}

export function faultEntry(code: FaultCode): FaultEntry {
  return faultCodes[code];
}

interface FaultDetails {
  /**
   * For the client. Never holds a secret, a prompt, an address or another client's text. Only `join_used` names an
   * address: the holder of a join line is told who else had it.
   */
  readonly message: string;
  /**
   * For logs and operators, never for clients. Holds only Trunkline's own words, numbers and codes: never the text of a
   * runtime or a parser, which may quote a prompt.
   */
  readonly internal?: string | undefined;
  /** A machine's own words for operators. They may quote the request, so no log has them above the level debug. */
  readonly told?: string | undefined;
  /** The invalid part of the request, as a path such as `messages[2].content`. */
  readonly param?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
  /** Set if the runtime or the whole machine was lost under the request, as when it crashes. */
  readonly died?: "runtime" | "machine" | undefined;
  readonly cause?: unknown;
}

/** Patterns of fields of a chat as machines name them, and the fields of an outer API that they came from. */
export type FieldNames = readonly (readonly [inChats: RegExp, here: string])[];

/** An expected failure, with one message for the client and another for the log. */
export class Fault extends Error {
  override readonly name = "Fault";
  readonly code: FaultCode;
  readonly internal: string | undefined;
  readonly told: string | undefined;
  readonly param: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly died: FaultDetails["died"];

  constructor(code: FaultCode, details: FaultDetails) {
    super(details.message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.internal = details.internal;
    this.told = details.told;
    this.param = details.param;
    this.retryAfterSeconds = details.retryAfterSeconds;
    this.died = details.died;
  }

  /**
   * The reason for logs and operators. Without `internal` it is the message, except for a refusal (4xx), whose message
   * may name parts of the request, and for the words of a machine.
   */
  get reason(): string | undefined {
    const isOwn = this.told === undefined && faultEntry(this.code).status >= 500;
    return this.internal ?? (isOwn ? this.message : undefined);
  }

  /** Returns this fault with other details. */
  with(changed: Partial<FaultDetails>): Fault {
    const { code, message, internal, told, param, retryAfterSeconds, died } = this;
    return new Fault(code, { message, internal, told, param, retryAfterSeconds, died, ...changed });
  }

  /**
   * Returns this fault with the client's own name for the field, if one of `names` has it. A machine names the field of
   * the chat that it got, and the client must read the field that it sent.
   */
  withFieldOf(names: FieldNames): Fault {
    const { message, param = "" } = this;
    const name = names.find(([inChats]) => inChats.test(param));
    if (name === undefined) return this;
    const own = param.replace(...name);
    const words = message.replaceAll(`'${param}'`, `'${own}'`);
    return this.with({ message: words, param: own });
  }

  /** Converts any thrown value into a Fault. A value that is no Fault is a bug, and its text stays internal. */
  static from(thrown: unknown): Fault {
    if (thrown instanceof Fault) return thrown;
    return new Fault("internal_error", {
      message: "Something went wrong inside Trunkline. The request id in the x-request-id header finds it in the log.",
      internal: originOf(thrown),
      cause: thrown,
    });
  }
}

/**
 * Returns the origin of an unexpected error: its name, its code and its stack, without its message. Parsers and
 * libraries quote their input in messages, and the input may be a prompt.
 */
export function originOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return `a ${typeof thrown} was thrown`;
  const { name, message, stack = "" } = thrown;
  const at = message === "" ? stack.indexOf("\n") : stack.indexOf(message) + message.length;
  const hasMessage = message === "" || stack.includes(message);
  const code = "code" in thrown && typeof thrown.code === "string" ? ` [${thrown.code}]` : "";
  return `${name}${code}${hasMessage && at >= 0 ? stack.slice(at) : ""}`;
}

/** Describes the first mismatch of a value with its schema. It leaves out zod's own message, which may quote texts. */
export function misfitOf(error: {
  readonly issues: readonly { readonly code: string; readonly path: readonly PropertyKey[] }[];
}): string {
  const [issue] = error.issues;
  const path = issue?.path.map((part) => (typeof part === "number" ? part : fieldName.test(String(part)) ? part : "…"));
  return `${path?.join(".") ?? ""}: ${issue?.code ?? "unknown"}`;
}

/** Matches field names of the protocols here. Any other key may be a client's text. */
const fieldName = /^[a-z_]{1,30}$/;

/** Returns the message of an error, or what names it where the message is empty. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.message !== "") return error.message;
  return "code" in error ? String(error.code) : error.name;
}
