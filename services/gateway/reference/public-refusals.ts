import type { PublicCode } from "./fault-meanings.ts";

type Codes = readonly PublicCode[];

/** The faults of every operation. */
export const refusalsOfAll: Codes = [
  "bad_request",
  "uri_too_long",
  "expectation_failed",
  "headers_too_large",
  "internal_error",
  "shutting_down",
];

/** The faults of operations that require a key. */
export const refusalsOfKeys: Codes = ["key_invalid", "key_expired", "auth_unavailable"];

/** The faults of missing machines and runtimes. */
export const refusalsOfMachines: Codes = ["agent_offline", "runtime_offline", "backend_unavailable"];

/** The faults of the body of any request that becomes a job. */
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

/** The faults of any request for a model. */
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

/** The faults of decimal numbers outside their bounds. */
export const refusalsOfDecimals: Codes = ["decimal_below_min_value", "decimal_above_max_value"];
