import { expect, test } from "vitest";
import { Fault, type FaultCode } from "#shared/fault/fault.ts";
import { messageFaultBody, messageStatus } from "../../../services/gateway/apis/messages/message-faults.ts";

test.each<[FaultCode, number, string, string | null]>([
  ["invalid_value", 400, "invalid_request_error", "invalid_value"],
  ["invalid_json", 400, "invalid_request_error", null],
  ["key_expired", 401, "authentication_error", "key_expired"],
  ["model_not_found", 404, "not_found_error", "model_not_found"],
  ["method_not_allowed", 405, "invalid_request_error", "method_not_allowed"],
  ["request_too_large", 413, "request_too_large", "request_too_large"],
  ["rate_limit_tokens", 429, "rate_limit_error", "rate_limit_exceeded"],
  ["internal_error", 500, "api_error", "internal_error"],
  ["upstream_error", 502, "api_error", "upstream_error"],
  ["agent_offline", 503, "api_error", "agent_offline"],
  ["upstream_timeout", 504, "timeout_error", "upstream_timeout"],
  ["server_is_overloaded", 529, "overloaded_error", "server_is_overloaded"],
])("the fault %s has the status %d and the type %s", (code, status, type, wire) => {
  const fault = new Fault(code, { message: "Why.", param: "a" });
  expect(messageStatus(fault)).toBe(status);
  expect(messageFaultBody(fault, "req_1")).toEqual({
    type: "error",
    error: { type, message: "Why.", code: wire, param: "a" },
    request_id: "req_1",
  });
});

test("the refusal of a thread says what Anthropic's SDK reads, so that it goes on without one", () => {
  const fault = new Fault("unsupported_parameter", { message: "Why.", param: "thread" });
  expect(messageFaultBody(fault, "req_1").error).toMatchObject({
    details: { error_code: "thread_unsupported_request", unsupported: ["thread"] },
  });
});
