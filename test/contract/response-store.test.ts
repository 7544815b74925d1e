import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Shelf, StoredResponses } from "#shared/records/stored-responses.ts";
import { RedisResponseStore } from "#shared/store/redis-response-store.ts";
import { SqliteResponseStore } from "#shared/store/sqlite-response-store.ts";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { systemClock as clock } from "#shared/process/clock.ts";
import { Operator } from "../harness/operator.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { until } from "../harness/until.ts";

const terms = { keptMs: 60_000, keyBytesMax: 2 ** 20, siteBytesMax: 2 ** 30 };
const max = 3;

/** A store of keys, and the responses beside them as another process has them. */
interface Place extends AsyncDisposable {
  readonly operator: Operator;
  readonly responses: StoredResponses;
}

function responsesIn({ store: { state } }: Operator, shelf: Shelf = "response"): StoredResponses {
  return state.kind === "redis"
    ? new RedisResponseStore(state.redis, shelf, max)
    : new SqliteResponseStore(state.database, clock, shelf, max);
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
  let position: Place;
  beforeAll(async () => void (position = await open()));
  afterAll(() => position?.[Symbol.asyncDispose]());

  const newKey = async () => (await position.operator.issue()).record.id;
  const sealed = (id: string) => ({ id, sealed: Buffer.from([0, 255, ...Buffer.from(id)]) });
  const found = async (key: Awaited<ReturnType<typeof newKey>>, ...ids: string[]) =>
    (await position.responses.find(key, ids)).map((each) => each && Buffer.from(each.subarray(2)).toString());

  test("are found by their ids in the order of the ids, by their own key alone", async () => {
    const [key, other] = [await newKey(), await newKey()];
    await position.responses.put(key, sealed("a"), terms);
    await position.responses.put(key, sealed("b"), terms);
    expect(await found(key, "b", "none", "a")).toEqual(["b", undefined, "a"]);
    expect(await found(other, "a")).toEqual([undefined]);
    expect(await position.responses.find(key, [])).toEqual([]);
    expect(await position.responses.bytesOf(key, ["b", "none", "a"])).toBe(6);
    expect(await position.responses.bytesOf(other, ["a"])).toBe(0);
  });

  test("stay as they are until they are deleted, one by one", async () => {
    const key = await newKey();
    expect(await position.responses.put(key, sealed("a"), terms)).toBe("stored");
    expect(await position.responses.put(key, { ...sealed("new"), id: "a" }, terms)).toBe("known");
    expect(await found(key, "a")).toEqual(["a"]);
    expect([await position.responses.remove(key, "a"), await position.responses.remove(key, "a")]).toEqual([
      true,
      false,
    ]);
    expect(await found(key, "a")).toEqual([undefined]);
  });

  test("end by themselves", async () => {
    const key = await newKey();
    await position.responses.put(key, sealed("a"), { ...terms, keptMs: 50 });
    await until(async () => (await found(key, "a"))[0] === undefined, { what: "the response to end" });
    await position.responses.removeExpired();
    expect(await position.responses.remove(key, "a")).toBe(false);
  });

  test("are bounded for each key, and the oldest go first", async () => {
    const key = await newKey();
    for (const id of ["a", "b", "c", "d"]) {
      await position.responses.put(key, sealed(id), terms);
      const nowMs = clock.wall();
      await until(() => clock.wall() > nowMs + 1, { what: "the next millisecond" });
    }
    expect(await found(key, "a", "b", "c", "d")).toEqual([undefined, "b", "c", "d"]);
  });

  test("are deleted with their key when it is revoked, and it stores no more", async () => {
    const [key, other] = [await newKey(), await newKey()];
    for (const each of [key, other]) await position.responses.put(each, sealed("a"), terms);
    await position.operator.change(key, { action: "disabled" });
    expect(await found(key, "a")).toEqual(["a"]);
    await position.operator.change(key, { action: "revoked" });
    expect(await position.responses.put(key, sealed("b"), terms)).toBe("closed");
    expect(await found(key, "a", "b")).toEqual([undefined, undefined]);
    expect(await found(other, "a")).toEqual(["a"]);
  });

  /** The bytes that the site has room for, beside those that other tests have stored. */
  const roomFor = async (bytes: number) => ({ ...terms, siteBytesMax: (await storedBytes(position.operator)) + bytes });
  const sized = (id: string, bytes: number) => ({ id, sealed: Buffer.alloc(bytes, id) });

  test("of a key take no more than its bytes, and the oldest go first", async () => {
    const key = await newKey();
    const bounded = { ...terms, keyBytesMax: 100 };
    for (const id of ["a", "b", "c"]) {
      expect(await position.responses.put(key, sized(id, 40), bounded)).toBe("stored");
      const nowMs = clock.wall();
      await until(() => clock.wall() > nowMs + 1, { what: "the next millisecond" });
    }
    expect((await position.responses.find(key, ["a", "b", "c"])).map((each) => each?.byteLength)).toEqual([
      undefined,
      40,
      40,
    ]);
    expect(await position.responses.put(key, sized("d", 101), bounded)).toBe("stored");
    expect((await position.responses.find(key, ["b", "c", "d"])).map((each) => each?.byteLength)).toEqual([
      undefined,
      undefined,
      101,
    ]);
  });

  test("of a site that is full are no more, until one is deleted or ends or its key is revoked", async () => {
    const [key, other] = [await newKey(), await newKey()];
    const bounded = await roomFor(100);
    expect(await position.responses.put(key, sized("a", 60), bounded)).toBe("stored");
    expect(await position.responses.put(other, sized("b", 40), bounded)).toBe("stored");
    expect(await position.responses.put(other, sized("c", 1), bounded)).toBe("full");
    expect(await position.responses.remove(key, "a")).toBe(true);
    expect(await position.responses.remove(key, "a")).toBe(false);
    expect(await position.responses.put(key, sized("c", 61), bounded)).toBe("full");
    expect(await position.responses.put(key, sized("c", 60), { ...bounded, keptMs: 50 })).toBe("stored");
    const putLater = () => position.responses.put(key, sized("d", 60), bounded);
    await until(async () => (await putLater()) === "stored", { what: "the bytes of the ended response" });
    expect(await position.responses.put(key, sized("e", 1), bounded)).toBe("full");
    await position.operator.change(other, { action: "revoked" });
    expect(await position.responses.put(key, sized("e", 41), bounded)).toBe("full");
    expect(await position.responses.put(key, sized("e", 40), bounded)).toBe("stored");
  });

  test("of captured content stand on a shelf of their own, and go with their key too", async () => {
    const key = await newKey();
    const captures = responsesIn(position.operator, "capture");
    const bounded = { ...terms, siteBytesMax: 10 };
    expect(await captures.put(key, sized("a", 10), bounded)).toBe("stored");
    expect(await captures.put(key, sized("b", 1), bounded)).toBe("full");
    expect([await captures.holders(), await found(key, "a")]).toEqual([[key], [undefined]]);
    await position.responses.put(key, sealed("a"), terms);
    expect(await captures.bytesOf(key, ["a"])).toBe(10);
    await position.operator.change(key, { action: "revoked" });
    expect([await captures.holders(), await captures.find(key, ["a"]), await found(key, "a")]).toEqual([
      [],
      [undefined],
      [undefined],
    ]);
  });

  test("of one conversation get positions of their own, also beside a gateway of 0.2.0", async () => {
    const key = await newKey();
    const { responses } = position;
    expect(await responses.holdPosition(key, "conv_x", 4)).toBeUndefined();
    await responses.put(key, sealed("conv_x"), terms);
    // An older gateway holds no position: it puts its turn at the first one without a text.
    await responses.put(key, sealed("conv_x.2"), terms);
    const held = await Promise.all([1, 2, 3].map(() => responses.holdPosition(key, "conv_x", 4)));
    expect(new Set(held)).toEqual(new Set(["conv_x.1", "conv_x.3", "conv_x.4"]));
    expect(await responses.holdPosition(key, "conv_x", 4)).toBeUndefined();
    expect(await responses.put(key, sealed("conv_x.3"), terms)).toBe("stored");
    expect(await responses.put(key, sealed("conv_x.3"), terms)).toBe("known");
  });
});

async function storedBytes({ store: { state } }: Operator): Promise<number> {
  if (state.kind === "redis")
    return Number(await state.redis.run("count", (redis) => redis.hget("response-bytes", "")));
  return Number(state.database.read("count", (sql) => sql.get`SELECT total(bytes) AS n FROM response_sums`)?.["n"]);
}

test("responses that a gateway of 0.2.0 stored in Redis, or dropped there, are counted as they are", async () => {
  await using position = await inRedis();
  const { state } = position.operator.store;
  if (state.kind !== "redis") throw new Error("the store is not in Redis");
  const [{ record: key }, { record: other }] = [await position.operator.issue(), await position.operator.issue()];
  /** As the script of 0.2.0 has it. */
  const putAsBefore = (id: string, bytes: number) =>
    state.redis.pipeline("store as before", (batch) =>
      batch
        .set(`responses:${key.id}:${id}`, Buffer.alloc(bytes), "PX", 60_000)
        .zadd(`responses:${key.id}`, Date.now() + 60_000, id),
    );
  await putAsBefore("a", 70);
  await position.responses.put(other.id, { id: "b", sealed: Buffer.alloc(30) }, terms);
  expect(await storedBytes(position.operator)).toBe(30);
  await position.responses.removeExpired();
  expect(await storedBytes(position.operator)).toBe(100);
  await putAsBefore("c", 50);
  expect(await position.responses.put(key.id, { id: "d", sealed: Buffer.alloc(1) }, terms)).toBe("stored");
  expect(await storedBytes(position.operator)).toBe(151);
  await state.redis.pipeline("revoke as before", (batch) =>
    ["a", "c", "d"].reduce((all, id) => all.unlink(`responses:${key.id}:${id}`), batch).unlink(`responses:${key.id}`),
  );
  await position.responses.removeExpired();
  expect(await storedBytes(position.operator)).toBe(30);
});

test("responses in a state file of 0.2.0 are counted when it is opened, and it keeps its version", async () => {
  const stateDir = folderOfTest();
  await using first = await Operator.on({ stateDir });
  const { record } = await first.issue();
  const { state } = first.store;
  if (state.kind !== "sqlite") throw new Error("the store is not embedded");
  const versionIn = (file: DatabaseSync) => file.prepare("PRAGMA user_version").get()?.["user_version"];
  const file = new DatabaseSync(join(stateDir, "trunkline.db"));
  onTestFinished(() => file.close());
  const version = versionIn(file);
  file.exec("DROP TRIGGER response_stored; DROP TRIGGER response_dropped; DROP TABLE response_sums");
  const insert = "INSERT OR IGNORE INTO responses VALUES (?, ?, 0, 9e15, zeroblob(40))";
  file.prepare(insert).run(record.id, "a");
  await using again = await Operator.on({ stateDir });
  expect([await storedBytes(again), versionIn(file)]).toEqual([40, version]);
  // Triggers are of the file, so that a process of 0.2.0 counts as well.
  for (const id of ["b", "b", "c"]) file.prepare(insert).run(record.id, id);
  expect(await storedBytes(again)).toBe(120);
  file.exec("DELETE FROM responses");
  expect(await storedBytes(again)).toBe(0);
});

test("a position of a conversation in SQLite is held without a commit, for which every stream would wait", async () => {
  const stateDir = folderOfTest();
  await using operator = await Operator.on({ stateDir });
  const { record } = await operator.issue();
  const responses = responsesIn(operator);
  await responses.put(record.id, { id: "conv_x", sealed: Buffer.alloc(1) }, terms);
  const file = new DatabaseSync(join(stateDir, "trunkline.db"));
  onTestFinished(() => file.close());
  const commits = () => file.prepare("PRAGMA data_version").get()?.["data_version"];
  const before = commits();
  expect(await responses.holdPosition(record.id, "conv_x", 4)).toBe("conv_x.1");
  expect(commits()).toBe(before);
});
