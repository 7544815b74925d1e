import { expect, test } from "vitest";
import { RequestRecords } from "#shared/requests/request-records.ts";

test("a search of requests ends in time with the time up to which it has looked, and goes on from its cursor", async () => {
  const record = { id: "req_1", keyId: "abcdefABCDEF", address: "127.0.0.1", path: "/v1/chat/completions" };
  const end = { streamed: false, tried: [], status: 200, endedBy: "machine", totalMs: 1 };
  const tokens = { promptTokens: 0, completionTokens: 0 };
  const entries = Array.from({ length: 2_000 }, (_, index) => ({
    cursor: String(2_000 - index),
    stored: { ...record, ...end, ...tokens, at: 2_000_000 - index, code: index === 1_500 ? "upstream_error" : "ok" },
  }));
  const page = async ({ before = "9999" }) =>
    entries.filter(({ cursor }) => Number(cursor) < Number(before)).slice(0, 1_000);
  const records = new RequestRecords({ page, get: async () => undefined });
  const first = await records.find({ failed: true }, { limit: 10, withinMs: 0 });
  expect(first).toMatchObject({ found: [], next: "1001", lookedUntilMs: 2_000_000 - 999 + 1 });
  const second = await records.find({ failed: true }, { limit: 10, withinMs: 0, before: first.next });
  expect(second.found.map(({ cursor }) => cursor)).toEqual(["500"]);
});
