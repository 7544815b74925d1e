import { type FaultCode, faultEntry } from "#shared/fault/fault.ts";
import { messageStatus } from "../http/answer-faults.ts";

/**
 * The cause of each fault that clients of the public API see, by the requests that can meet it. The error's message has
 * the details of the single case. Faults of the admin API, of paired machines and of clients that disconnected have none.
 */
const faultMeanings = {
  /** Any request. */
  all: {
    bad_request: "The request is no well-formed HTTP, or its head could be read in two ways.",
    uri_too_long: "The URL is longer than the limit.",
    expectation_failed: "The header `Expect` asks for something else than `100-continue`.",
    headers_too_large: "The headers are larger, or more, than the limit.",
    internal_error: "A mistake inside Trunkline. The request id finds it in the operator's log.",
    shutting_down: "This gateway stops; another, or the same in a moment, takes the request.",
  },
  /** Requests that need a key. */
  keys: {
    key_invalid: "No key was sent, or one that does not exist, is disabled or was taken back.",
    key_expired: "The key was good once. Ask whoever issued it for a new one.",
    auth_unavailable: "The key cannot be looked up just now.",
  },
  /** Requests with a body. */
  bodies: {
    invalid_json: "The body is not one JSON object.",
    missing_required_parameter: "A field that has to be there is not; `param` names it.",
    invalid_type: "A field is of another type than it has to be.",
    invalid_value: "A field has a value that makes no sense there, or not together with another field.",
    integer_below_min_value: "A whole number is too small.",
    integer_above_max_value: "A whole number is too large.",
    string_too_long: "A text is too long.",
    empty_array: "A list is empty that has to hold something.",
    array_above_max_length: "A list holds too much.",
    unsupported_parameter: "A field asks for what nothing here, or not the model's runtime, can do.",
    unsupported_value: "A value of a field asks for what nothing here, or not the model or its runtime, can do.",
    request_timeout: "The request did not arrive whole in time.",
    request_too_large: "The body is larger than the limit.",
    unsupported_media_type:
      "The body is no JSON in UTF-8 with `Content-Type: application/json`, or no form where one is asked for, or is compressed.",
  },
  /** Requests with settings that are decimals. */
  decimals: {
    decimal_below_min_value: "A number is too small.",
    decimal_above_max_value: "A number is too large.",
  },
  /** Requests that may have tools. */
  tools: {
    tool_messages_out_of_order: "A call of a tool has no answer right after it, or an answer has no call before it.",
    model_does_not_support_tools: "`tools` were given to a model whose `capabilities.tools` is not true.",
  },
  /** Requests that ask machines. */
  machines: {
    agent_offline: "The GPU machines that have this model are not reachable just now.",
    runtime_offline: "The machine is there, but the model server on it does not answer.",
    backend_unavailable: "The gateway has lost the connection to what it stands on.",
  },
  /** Requests for a model. */
  jobs: {
    context_length_exceeded: "The prompt, or the prompt and the answer it asks for, is longer than the model's window.",
    model_not_found: "There is no such model, or the key may not use it.",
    rate_limit_requests: "The key sent as many requests a minute as it may; the type is `requests`.",
    rate_limit_tokens: "The key used as many tokens as it may for now, or has reserved them; the type is `tokens`.",
    rate_limit_loads: "The key had as many models loaded in place of others as it may in a minute.",
    loads_not_allowed: "The key may have no model loaded in place of others, and this one is in no machine's memory.",
    concurrency_limit_exceeded: "The key has as many requests under way at once as it may.",
    insufficient_quota:
      "The key has used all its tokens of this day or month, or the prompt alone is longer than what its limits have left, or the stored responses of the site have no room left.",
    upstream_error: "The model's runtime failed, or said what nobody could understand.",
    agent_disconnected: "The GPU machine stopped answering in the middle of the request.",
    poison_request: "The model servers that worked on this very request broke off one after the other.",
    stream_gap: "A piece of the answer was lost on its way, and could not be had again.",
    model_loading: "The model is not in memory yet. Its load goes on, and `Retry-After` says for how long.",
    server_is_overloaded: "There is no room for the request: the queue, or the memory for bodies, is full.",
    upstream_timeout: "The model took longer than the operator allows.",
  },
  /** Requests whose answer can be resumed or had again. */
  repeats: {
    answer_not_found:
      "The answer that `Last-Event-ID` resumes is not there, is not of this key, or is too long or too old.",
    idempotency_key_reused: "The `Idempotency-Key` stands for another request of the key, with another body.",
    idempotency_key_in_use:
      "A request with this `Idempotency-Key` is still under way after the longest time of an answer (`jobTotalMs`).",
    idempotency_keys_used_up: "The key has 1,000 answers with an `Idempotency-Key` that are under way or kept.",
  },
  /** Some operations, or no operation at all. */
  others: {
    response_not_found:
      "There is no such response of the key, or it needs an earlier one that is gone: it was deleted, or is too old.",
    insufficient_permissions:
      "The key has a limit in tokens, by which a request about speech or images cannot be counted, or the action is the operator's.",
    unknown_url: "No endpoint at this URL.",
    upgrade_refused:
      "The request asks for a WebSocket (`Upgrade: websocket`), and none is served: send it by HTTP alone.",
    method_not_allowed: "The URL has no such method; the header `allow` has those that it has.",
  },
} as const satisfies Record<string, Partial<Record<FaultCode, string>>>;

type Meanings = typeof faultMeanings;
type FaultGroup = keyof Meanings;
export type PublicCode = { [Group in FaultGroup]: keyof Meanings[Group] }[FaultGroup];

const meanings = Object.fromEntries(Object.values(faultMeanings).flatMap((group) => Object.entries(group)));
export const publicCodes = Object.keys(meanings) as PublicCode[];

/** Returns the codes of some groups of faults. */
export function faultsOf(...groups: readonly FaultGroup[]): readonly PublicCode[] {
  return groups.flatMap((group) => Object.keys(faultMeanings[group]) as PublicCode[]);
}

/**
 * Returns every error that a client of the public API may get, sorted by status. `retried` is true if official clients
 * retry the request automatically.
 */
export function faultDescriptions() {
  const descriptions = publicCodes.map((name) => {
    const { status, type, retry, retryAfterSeconds } = faultEntry(name);
    const messages_status = anthropicStatus(name);
    return {
      status,
      ...(messages_status === status ? {} : { messages_status }),
      type,
      code: publicCode(name),
      meaning: meanings[name],
      retried: retry !== false && isRetried(status),
      ...(retryAfterSeconds === undefined ? {} : { retry_after_seconds: retryAfterSeconds }),
    };
  });
  return descriptions.sort((a, b) => a.status - b.status);
}

/** True if official clients retry this status by default, without an `x-should-retry` header. */
function isRetried(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500;
}

/** Returns the code of a fault as clients see it. Null where OpenAI has no code. */
export function publicCode(code: FaultCode): string | null {
  const { wire } = faultEntry(code);
  return wire === undefined ? code : wire;
}

export function openAiStatus(code: FaultCode): number {
  return faultEntry(code).status;
}

export function anthropicStatus(code: FaultCode): number {
  return messageStatus({ code });
}

/** Groups fault codes by their HTTP status in one of the outer APIs. */
export function byStatus(
  codes: readonly FaultCode[],
  statusOf: (code: FaultCode) => number,
): [status: string, codes: readonly FaultCode[]][] {
  const groups = Object.groupBy(codes, statusOf);
  return Object.entries(groups).map(([status, group = []]) => [status, group]);
}

/** Returns a sentence that lists the codes of one status. */
export function refusedWith(codes: readonly FaultCode[]): string {
  const names = new Set(codes.map((code) => publicCode(code) ?? "null"));
  return `Refused, with the code ${[...names].join(" or ")}.`;
}
