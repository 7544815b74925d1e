import { expect, test } from "vitest";
import { faultCodes, faultEntry, isFaultCode, type FaultCode, Fault } from "#shared/fault/fault.ts";
import { faultBody, faultHeaders } from "../../../services/gateway/http/answer-faults.ts";

const codes = Object.keys(faultCodes).filter(isFaultCode);

/** The codes that clients know by another name. */
const told = new Map<FaultCode, string | null>([
  ["invalid_json", null],
  ["tool_messages_out_of_order", null],
  ["rate_limit_requests", "rate_limit_exceeded"],
  ["rate_limit_tokens", "rate_limit_exceeded"],
  ["rate_limit_loads", "rate_limit_exceeded"],
  ["loads_not_allowed", "insufficient_permissions"],
]);

test.each(codes)("the error body of %s has message, type, param and code, as texts or null", (code) => {
  for (const param of [undefined, "messages[0].role"]) {
    const body = faultBody(new Fault(code, { message: "What went wrong.", param, internal: "10.0.0.7:11434" }));
    expect(JSON.parse(JSON.stringify(body))).toEqual({
      error: {
        message: "What went wrong.",
        type: faultEntry(code).type,
        param: param ?? null,
        code: told.has(code) ? told.get(code) : code,
      },
    });
  }
});

test("the error body of a bug says nothing of it", () => {
  const { error } = faultBody(Fault.from(new Error("connect ECONNREFUSED 10.0.0.7:11434")));
  expect(error).toMatchObject({ type: "server_error", code: "internal_error", param: null });
  expect(error.message).not.toMatch(/ECONNREFUSED|10\.0\.0\.7/);
});

const headersOf = (code: FaultCode, retryAfterSeconds?: number) =>
  faultHeaders(new Fault(code, { message: "", retryAfterSeconds }));

test("the headers of an error ask for a key on 401 and nowhere else", () => {
  const asking = codes.filter((code) => headersOf(code)["www-authenticate"] === "Bearer");
  expect(asking).toEqual(["key_invalid", "key_expired"]);
});

test("the headers of an error say when to try again on every 503, soon enough for clients to really wait", () => {
  for (const code of codes.filter((each) => faultEntry(each).status === 503)) {
    expect(headersOf(code)["retry-after"]).toMatch(/^[1-9]$|^[1-5]\d$/);
  }
  expect(headersOf("agent_offline", 17)["retry-after"]).toBe("17");
});

test("the headers of an error keep official clients from repeating what would fail again: they repeat 408, 409, 429 and from 500 on", () => {
  const repeated = codes.filter(
    (code) => [408, 409, 429].includes(faultEntry(code).status) || faultEntry(code).status >= 500,
  );
  const stopped = repeated.filter((code) => headersOf(code)["x-should-retry"] === "false");
  expect(stopped).toEqual(
    `
  request_timeout key_change_refused machine_change_refused keep_change_refused price_change_refused
  team_change_refused person_change_refused alert_change_refused route_change_refused
  idempotency_key_reused join_used machine_key_used direct_unavailable machine_name_used
  machines_unavailable insufficient_quota internal_error poison_request upstream_timeout
`
      .trim()
      .split(/\s+/),
  );
});

test("the headers of an error keep coding agents from repeating a request whose key was revoked or has expired", () => {
  for (const code of ["key_invalid", "key_expired"] as const) expect(headersOf(code)["x-should-retry"]).toBe("false");
});

test.each([
  ["key_invalid", 401],
  ["key_expired", 401],
  ["agent_offline", 503],
  ["model_does_not_support_tools", 400],
  ["model_not_found", 404],
  ["request_too_large", 413],
] as const)("the status of the error %s is that of the contract, %i", (code, status) => {
  expect(faultEntry(code).status).toBe(status);
});
