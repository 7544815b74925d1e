import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { StoredResponses } from "#shared/records/stored-responses.ts";
import { RedisResponseStore } from "#shared/store/redis-response-store.ts";
import { SqliteResponseStore } from "#shared/store/sqlite-response-store.ts";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock as clock } from "#shared/process/clock.ts";
import { Operator } from "../harness/operator.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { until } from "../harness/until.ts";

const forMs = 60_000;
const max = 3;

/** A store of keys, and the responses beside them as another process has them. */
interface Place extends AsyncDisposable {
  readonly operator: Operator;
  readonly responses: StoredResponses;
}

function responsesIn({ store: { state } }: Operator): StoredResponses {
  return state.kind === "redis"
    ? new RedisResponseStore(state.redis, max)
    : new SqliteResponseStore(state.database, clock, max);
}

async function inSqlite(): Promise<Place> {
  const stateDir = await mkdtemp(join(tmpdir(), "trunkline-responses-"));
  const operator = await Operator.on({ stateDir });
  const close = async (): Promise<void> => {
    await operator[Symbol.asyncDispose]();
    await rm(stateDir, { recursive: true });
  };
  return { operator, responses: responsesIn(operator), [Symbol.asyncDispose]: close };
}

async function inRedis(): Promise<Place> {
  const redis = await redisUrl();
  const operator = await Operator.on({ redisUrl: redis.url });
  const close = async (): Promise<void> => {
    await operator[Symbol.asyncDispose]();
    await redis[Symbol.asyncDispose]();
  };
  return { operator, responses: responsesIn(operator), [Symbol.asyncDispose]: close };
}

describe.each([
  ["Redis", inRedis],
  ["SQLite", inSqlite],
])("stored responses in %s", (_, open) => {
  let place: Place;
  beforeAll(async () => void (place = await open()));
  afterAll(() => place?.[Symbol.asyncDispose]());

  const newKey = async () => (await place.operator.issue()).record.id;
  const sealed = (id: string) => ({ id, sealed: Buffer.from([0, 255, ...Buffer.from(id)]) });
  const found = async (key: Awaited<ReturnType<typeof newKey>>, ...ids: string[]) =>
    (await place.responses.find(key, ids)).map((each) => each && Buffer.from(each.subarray(2)).toString());

  test("are found by their ids in the order of the ids, by their own key alone", async () => {
    const [key, other] = [await newKey(), await newKey()];
    await place.responses.put(key, sealed("a"), forMs);
    await place.responses.put(key, sealed("b"), forMs);
    expect(await found(key, "b", "none", "a")).toEqual(["b", undefined, "a"]);
    expect(await found(other, "a")).toEqual([undefined]);
    expect(await place.responses.find(key, [])).toEqual([]);
    expect(await place.responses.bytesOf(key, ["b", "none", "a"])).toBe(6);
    expect(await place.responses.bytesOf(other, ["a"])).toBe(0);
  });

  test("stay as they are until they are deleted, one by one", async () => {
    const key = await newKey();
    expect(await place.responses.put(key, sealed("a"), forMs)).toBe(true);
    expect(await place.responses.put(key, { ...sealed("new"), id: "a" }, forMs)).toBe(false);
    expect(await found(key, "a")).toEqual(["a"]);
    expect([await place.responses.remove(key, "a"), await place.responses.remove(key, "a")]).toEqual([true, false]);
    expect(await found(key, "a")).toEqual([undefined]);
  });

  test("end by themselves", async () => {
    const key = await newKey();
    await place.responses.put(key, sealed("a"), 50);
    await until(async () => (await found(key, "a"))[0] === undefined, { what: "the response to end" });
    await place.responses.removeExpired();
    expect(await place.responses.remove(key, "a")).toBe(false);
  });

  test("are bounded for each key, and the oldest go first", async () => {
    const key = await newKey();
    for (const id of ["a", "b", "c", "d"]) {
      await place.responses.put(key, sealed(id), forMs);
      const nowMs = clock.wall();
      await until(() => clock.wall() > nowMs + 1, { what: "the next millisecond" });
    }
    expect(await found(key, "a", "b", "c", "d")).toEqual([undefined, "b", "c", "d"]);
  });

  test("are deleted with their key when it is revoked, and it stores no more", async () => {
    const [key, other] = [await newKey(), await newKey()];
    for (const each of [key, other]) await place.responses.put(each, sealed("a"), forMs);
    await place.operator.change(key, { action: "disabled" });
    expect(await found(key, "a")).toEqual(["a"]);
    await place.operator.change(key, { action: "revoked" });
    await place.responses.put(key, sealed("b"), forMs);
    expect(await found(key, "a", "b")).toEqual([undefined, undefined]);
    expect(await found(other, "a")).toEqual(["a"]);
  });
});
