import { expect, test } from "vitest";
import type { RequestRecord } from "#shared/requests/request-record.ts";
import { RequestRecords } from "#shared/requests/request-records.ts";

const record: RequestRecord = {
  id: "req_1",
  at: 0,
  keyId: "abcdefABCDEF",
  address: "127.0.0.1",
  path: "/v1/chat/completions",
  streamed: false,
  tried: [],
  status: 200,
  code: "ok",
  endedBy: "machine",
  totalMs: 1,
  promptTokens: 0,
  completionTokens: 0,
};

test("a search of many requests lets the event loop go on between two pages, and ends", async () => {
  let pages = 0;
  const page = Array.from({ length: 1_000 }, () => ({ cursor: "1", record }));
  const records = new RequestRecords({ page: async () => ((pages += 1) > 5 ? [] : page), get: async () => undefined });
  let turns = 0;
  const count = (): void => {
    turns += 1;
    if (pages <= 5) setImmediate(count);
  };
  setImmediate(count);
  const { found, next } = await records.find({ failed: true }, { limit: 1 });
  expect([found, next, pages]).toEqual([[], undefined, 6]);
  expect(turns).toBeGreaterThanOrEqual(5);
});
