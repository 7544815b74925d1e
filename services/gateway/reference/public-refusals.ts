import type { PublicCode } from "./fault-meanings.ts";

type Codes = readonly PublicCode[];

/** What is refused whatever is asked for. */
export const refusalsOfAll: Codes = [
  "bad_request",
  "uri_too_long",
  "expectation_failed",
  "headers_too_large",
  "internal_error",
  "shutting_down",
];

/** What is refused where a key is asked for. */
export const refusalsOfKeys: Codes = ["key_invalid", "key_expired", "rate_limit_bad_keys", "auth_unavailable"];

/** What comes of machines that are not there. */
export const refusalsOfMachines: Codes = ["agent_offline", "runtime_offline", "backend_unavailable"];

/** What is refused of any body that is to become a job. */
const refusalsOfBodies: Codes = [
  "invalid_json",
  "missing_required_parameter",
  "invalid_type",
  "invalid_value",
  "integer_below_min_value",
  "integer_above_max_value",
  "string_too_long",
  "empty_array",
  "array_above_max_length",
  "unsupported_parameter",
  "unsupported_value",
  "request_timeout",
  "request_too_large",
  "unsupported_media_type",
];

/** What a request for a model may end in, whatever is asked of it. */
export const refusalsOfJobs: Codes = [
  ...refusalsOfKeys,
  ...refusalsOfBodies,
  "context_length_exceeded",
  "model_not_found",
  "rate_limit_requests",
  "rate_limit_tokens",
  "concurrency_limit_exceeded",
  "insufficient_quota",
  "upstream_error",
  "agent_disconnected",
  "poison_request",
  "stream_gap",
  ...refusalsOfMachines,
  "server_is_overloaded",
  "upstream_timeout",
];

/** What numbers with a point may be beside. */
export const refusalsOfDecimals: Codes = ["decimal_below_min_value", "decimal_above_max_value"];
