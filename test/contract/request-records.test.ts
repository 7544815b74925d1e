import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { systemClock } from "#shared/process/clock.ts";
import { connectRedis } from "#shared/process/redis-connection.ts";
import type { RequestRecord } from "#shared/requests/request-record.ts";
import { type KeptRequests, openRequests, type RequestRecords } from "#shared/requests/request-records.ts";
import { openStateDatabase } from "#shared/store/state-database.ts";
import type { LimitsBook } from "../../services/gateway/limits/limits.ts";
import { SqliteLimitsBook } from "../../services/gateway/limits/open-limits.ts";
import { RedisLimitsBook } from "../../services/gateway/limits/redis-limits.ts";
import type { SomeServer } from "../harness/found-servers.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { until } from "../harness/until.ts";
import { rowOf, settlementOf } from "./limits-book.contract.ts";

let server: SomeServer;
beforeAll(async () => void (server = await redisUrl()));
afterAll(() => server.stop());

interface Place {
  readonly book: LimitsBook;
  readonly records: RequestRecords;
}

const dayMs = 86_400_000;
const usual = { max: 100_000, ms: dayMs };
const clock = systemClock;

async function sqlitePlace(kept: KeptRequests = usual): Promise<Place> {
  const folder = folderOfTest();
  const database = openStateDatabase(folder);
  onTestFinished(() => {
    database.close();
  });
  return { book: new SqliteLimitsBook(database, { clock, kept }), records: openRequests({ kind: "sqlite", database }) };
}

async function redisPlace(kept: KeptRequests = usual): Promise<Place> {
  const keyPrefix = `trunkline-test-${randomUUID()}:`;
  const redis = await connectRedis({ url: server.url, keyPrefix, commandTimeoutMs: 5_000 });
  onTestFinished(() => redis.close());
  return { book: new RedisLimitsBook(redis, { clock, kept }), records: openRequests({ kind: "redis", redis }) };
}

function recordOf(id: string, more: Partial<RequestRecord> = {}): RequestRecord {
  return {
    id,
    at: clock.wall(),
    keyId: "abcdefABCDEF",
    address: "127.0.0.1",
    path: "/v1/chat/completions",
    streamed: true,
    asked: "llama3",
    tried: [],
    status: 200,
    code: "ok",
    endedBy: "machine",
    totalMs: 10,
    promptTokens: 1,
    completionTokens: 2,
    ...more,
  };
}

let sequence = 0;
async function book({ book: to }: Place, ...records: readonly RequestRecord[]): Promise<void> {
  const numbers = { sequence: (sequence += 1), acknowledged: sequence - 1 };
  const requests = records.map((record) => JSON.stringify(record));
  await to.settle(settlementOf({ ...numbers, usage: [rowOf({})], requests }));
}

const idsOf = ({ found }: { readonly found: readonly { readonly record: RequestRecord }[] }) =>
  found.map(({ record }) => record.id);

describe.each([
  ["SQLite", sqlitePlace],
  ["Redis", redisPlace],
] as const)("records of requests in %s", (_, open) => {
  test("are read the latest first, page by page, and one by its id", async () => {
    const place = await open();
    await book(place, recordOf("req_1"), recordOf("req_2"));
    await book(place, recordOf("req_3", { agent: 'a "client" / 1.0 → ü' }));
    const first = await place.records.find({}, { limit: 2 });
    expect(idsOf(first)).toEqual(["req_3", "req_2"]);
    const second = await place.records.find({}, { limit: 2, before: first.next });
    expect(idsOf(second)).toEqual(["req_1"]);
    expect(second.next).toBeUndefined();
    expect(await place.records.get("req_3")).toMatchObject({ agent: 'a "client" / 1.0 → ü' });
    expect(await place.records.get("req_4")).toBeUndefined();
  });

  test("are found by their key, a part of their model or path, machine, time, length, and outcome", async () => {
    const place = await open();
    const cost = {
      totalMs: 1,
      loadMs: 0,
      slotMs: 0,
      backlogMs: 0,
      promptMs: 1,
      answerMs: 0,
      delayMs: 0,
      backlogTokens: 0,
    };
    const tried = [{ machine: "attic", model: "llama3", atMs: 0, cost, cachedTokens: 0, others: [] }];
    const old = clock.wall() - 3_600_000;
    await book(
      place,
      recordOf("req_old", { at: old }),
      recordOf("req_key", { keyId: "otherOTHER12", path: "/v1/embeddings" }),
      recordOf("req_model", { asked: "fast", model: "qwen3" }),
      recordOf("req_machine", { tried, totalMs: 5_001 }),
      recordOf("req_failed", { code: "agent_offline", status: 503 }),
    );
    const find = async (query: object) => idsOf(await place.records.find(query, { limit: 10 }));
    expect(await find({ keyIds: ["otherOTHER12"] })).toEqual(["req_key"]);
    expect(await find({ model: "WEN" })).toEqual(["req_model"]);
    expect(await find({ model: "fast" })).toEqual(["req_model"]);
    expect(await find({ machine: "attic" })).toEqual(["req_machine"]);
    expect(await find({ failed: true })).toEqual(["req_failed"]);
    expect(await find({ code: "agent_offline" })).toEqual(["req_failed"]);
    expect(await find({ api: "embed" })).toEqual(["req_key"]);
    expect(await find({ longerMs: 5_000 })).toEqual(["req_machine"]);
    expect(await find({ untilMs: old + 1 })).toEqual(["req_old"]);
    expect(await find({ sinceMs: old + 1, failed: false })).toEqual(["req_machine", "req_model", "req_key"]);
  });

  test("can be followed from the latest on", async () => {
    const place = await open();
    await book(place, recordOf("req_1"));
    const after = (await place.records.find({}, { limit: 1 })).found[0]?.cursor;
    await book(place, recordOf("req_2"), recordOf("req_3"));
    expect(idsOf(await place.records.find({}, { limit: 10, after }))).toEqual(["req_3", "req_2"]);
  });

  test("go on from the latest one that was looked at, though it did not match", async () => {
    const place = await open();
    await book(place, recordOf("req_1"));
    const { found, latest } = await place.records.find({ failed: true }, { limit: 1 });
    expect(found).toEqual([]);
    await book(place, recordOf("req_2"));
    expect(idsOf(await place.records.find({}, { limit: 10, after: latest }))).toEqual(["req_2"]);
  });

  test("that this build cannot read are counted, and hide no other", async () => {
    const place = await open();
    const strange = { ...recordOf("req_2"), endedBy: "somebody new" } as never;
    await book(place, recordOf("req_1"), strange, recordOf("req_3"));
    const page = await place.records.find({}, { limit: 10 });
    expect([idsOf(page), page.unread]).toEqual([["req_3", "req_1"], 1]);
    expect(await place.records.get("req_1")).toMatchObject({ id: "req_1" });
  });

  test("are written once, however often their settlement is sent", async () => {
    const { book: to, records } = await open();
    const settlement = settlementOf({ usage: [rowOf({})], requests: [JSON.stringify(recordOf("req_1"))] });
    await to.settle(settlement);
    await to.settle(settlement);
    expect(idsOf(await records.find({}, { limit: 10 }))).toEqual(["req_1"]);
  });

  test("are dropped when there are too many of them", async () => {
    const place = await open({ max: 100, ms: dayMs });
    for (let each = 0; each < 10; each += 1)
      await book(place, ...Array.from({ length: 50 }, (__, at) => recordOf(`req_${each}_${at}`)));
    const { found } = await place.records.find({}, { limit: 1_000 });
    // Redis drops whole blocks of its stream, so that it keeps some more.
    expect(found.length).toBeGreaterThanOrEqual(100);
    expect(found.length).toBeLessThanOrEqual(250);
    expect(found[0]?.record.id).toBe("req_9_49");
  });
});

describe("records in Redis are dropped", () => {
  const nothing = () => settlementOf({ sequence: (sequence += 1), acknowledged: sequence - 1 });

  test("records in Redis are dropped when they are too old, also while no request ends", async () => {
    const { book: to, records } = await redisPlace({ max: 100, ms: 1 });
    await to.settle({ ...nothing(), requests: [JSON.stringify(recordOf("req_old"))] });
    const isGone = async (): Promise<boolean> => {
      await to.settle(nothing());
      return (await records.find({}, { limit: 1 })).found.length === 0;
    };
    await until(isGone, { what: "the old record to go" });
  });

  test("records in Redis are dropped when none are kept any more", async () => {
    const keyPrefix = `trunkline-test-${randomUUID()}:`;
    const redis = await connectRedis({ url: server.url, keyPrefix, commandTimeoutMs: 5_000 });
    onTestFinished(() => redis.close());
    const records = openRequests({ kind: "redis", redis });
    await book({ book: new RedisLimitsBook(redis, { clock, kept: usual }), records }, recordOf("req_1"));
    await new RedisLimitsBook(redis, { clock, kept: { ...usual, max: 0 } }).settle(nothing());
    expect(idsOf(await records.find({}, { limit: 1 }))).toEqual([]);
  });
});

test("records in SQLite are dropped when they are too old", async () => {
  const place = await sqlitePlace({ max: 100, ms: dayMs });
  await book(place, recordOf("req_old", { at: clock.wall() - 2 * dayMs }), recordOf("req_new"));
  expect(idsOf(await place.records.find({}, { limit: 10 }))).toEqual(["req_new"]);
});
