import { bookOf } from "../harness/book-of-a-test.ts";
import { freeRate } from "#shared/prices/cost.ts";
import { checkKey } from "#shared/records/judge-key.ts";
import { copyFile, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { gunzipSync, gzipSync } from "node:zlib";
import { Redis } from "ioredis";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { changeKey, rotateKey } from "#shared/records/change-key.ts";
import { type IssuedKey, issueKey, type NewKey } from "#shared/records/issue-key.ts";
import { openKeyStore, type OpenedKeyStore } from "#shared/store/open-key-store.ts";
import { lastBackup } from "#shared/store/last-backup.ts";
import { pepperText } from "#shared/keys/pepper.ts";
import { signedIn } from "#shared/records/change-person.ts";
import { setTeam } from "#shared/records/change-team.ts";
import { changeMachine, removeMachine } from "#shared/records/change-machine.ts";
import { openKnownModels } from "#shared/store/known-models.ts";
import { systemClock } from "#shared/process/clock.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { setPrice, setRoute } from "../harness/set-records.ts";
import { openUsage } from "#shared/usage/usage.ts";
import { backupCommand, restoreCommand } from "../../services/cli/commands/backup.ts";
import { budgetPeriodAt } from "../../services/gateway/limits/budgets.ts";
import { SqliteLimitsBook } from "../../services/gateway/limits/open-limits.ts";
import { RedisLimitsBook } from "../../services/gateway/limits/redis-limits.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startGatewayInProcess } from "../harness/gateway-in-process.ts";
import { joinOnStore, lineOnStore, pairOnStore } from "../harness/pair-on-store.ts";
import { startRedisServer } from "../harness/redis-server.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { type Settings, testPepper } from "../harness/trunkline-command.ts";
import { commandHere } from "../harness/trunkline-here.ts";
import { TurnableClock } from "../harness/turnable-clock.ts";
import { admissionOf, rowOf, settlementOf } from "../contract/limits-book.contract.ts";

const dayMs = 86_400_000;
const actor = { by: "the operator" };
const own = { TRUNKLINE_KEY_PEPPER: testPepper };

let folder: string;
let file: string;
beforeEach(async () => {
  folder = folderOfTest();
  file = join(folder, "site.backup");
});

type Place = Settings & ({ readonly TRUNKLINE_STATE_DIR: string } | { readonly TRUNKLINE_REDIS_URL: string });

const stateDir = (name: string, env: Settings = own): Place => ({ ...env, TRUNKLINE_STATE_DIR: join(folder, name) });

async function redisOfOnesOwn(env: Settings = own): Promise<Place & { readonly url: string }> {
  const server = await startRedisServer();
  onTestFinished(() => server[Symbol.asyncDispose]());
  return {
    ...env,
    TRUNKLINE_STATE_DIR: join(folder, "beside-redis"),
    TRUNKLINE_REDIS_URL: server.url,
    url: server.url,
  };
}

const backUp = (environment: Settings, ...args: string[]) =>
  commandHere(backupCommand, [file, ...args], { environment });
const restore = (environment: Settings, ...args: string[]) =>
  commandHere(restoreCommand, [file, ...args], { environment });

/** Works on a store as another process does. */
async function inStore<Result>(
  place: Settings,
  work: (store: OpenedKeyStore) => Promise<Result>,
  clock = systemClock,
): Promise<Result> {
  const settings = { redisUrl: place["TRUNKLINE_REDIS_URL"], stateDir: place["TRUNKLINE_STATE_DIR"] ?? "" };
  const pepper = pepperText.parse(place["TRUNKLINE_KEY_PEPPER"] ?? testPepper);
  const store = await openKeyStore({ ...settings, keyPepper: pepper }, { clock, patienceMs: 5_000 });
  try {
    return await work(store);
  } finally {
    await store.keys.close();
  }
}

const issueIn = (store: OpenedKeyStore, terms: Partial<NewKey> = {}): Promise<IssuedKey> =>
  issueKey({ name: "alice", scopes: ["*"], ttlMs: dayMs, ...terms }, { ...store, actor });
const revoke = (place: Settings, { record }: IssuedKey) =>
  inStore(place, (store) => changeKey(record.id, { action: "revoked" }, { ...store, actor }));

const tokensUsed = 60;
const limits = { requestsPerMinute: 10, concurrency: 2, budget: { tokens: tokensUsed, per: "month" } } as const;

const limitsBookOf = ({ state }: OpenedKeyStore) =>
  state.kind === "redis"
    ? new RedisLimitsBook(state.redis, { clock: systemClock })
    : new SqliteLimitsBook(state.database, { clock: systemClock });

/** Fills a store with one of everything, by what the commands and gateways do. */
async function fill(place: Settings) {
  const longAgo = new TurnableClock({ wallMs: Date.now() - 100 * dayMs });
  const lapsed = await inStore(place, (store) => issueIn(store, { ttlMs: 60_000 }), longAgo);
  const expired = await inStore(place, (store) => issueIn(store, { ttlMs: 99 * dayMs }), longAgo);
  return inStore(place, async (store) => {
    const means = { ...store, actor };
    const spent = await issueIn(store, { limits, machines: ["attic"], external: true });
    const [revoked, disabled, rotated] = [await issueIn(store), await issueIn(store), await issueIn(store)];
    const { record: admin } = await issueIn(store, { kind: "admin" });
    const signIn = { by: `admin ${admin.id}`, action: "signed_in", key: admin.id, name: "alice" } as const;
    for (const ago of [2, 1]) await store.sessions.noteSignIn({ ...signIn, at: Date.now() - ago * dayMs });
    await setPrice("qwen* external", { input: 200_000 }, means);
    await changeKey(revoked.record.id, { action: "revoked" }, means);
    await changeKey(disabled.record.id, { action: "disabled" }, means);
    await rotateKey({ id: rotated.record.id, graceMs: dayMs }, means);
    const attic = await pairOnStore("attic", store);
    const cellar = await pairOnStore("cellar", store);
    await lineOnStore("loft", store);
    await changeMachine("attic", { action: "machine_labelled", labels: ["fast"] }, means);
    await changeMachine("cellar", { action: "machine_revoked" }, means);
    await store.machines.noteSeen(new Map([[attic, { atMs: 1_700_000_000_000, runtime: null, models: 0 }]]));
    await setTeam("research", { isNew: true, claims: ["physics"] }, means);
    await signedIn({ issuer: "https://id", subject: "1", called: "Anna", claims: ["physics"] }, means);
    await store.machines.noteSite({ publicUrl: "https://models.example.org", takesMachines: true });
    await setRoute("claude-*", [{ model: "llama3", label: "fast" }, { model: "qwen" }], means);
    await openKnownModels(store.state).remember({ machine: "attic", modelIds: ["llama3"], seenAtMs: Date.now() });
    const day = budgetPeriodAt("day", Date.now()).name;
    const row = rowOf({ day, keyId: spent.record.id, promptTokens: tokensUsed, durationMs: 5 });
    const old = { ...row, day: budgetPeriodAt("day", Date.now() - 60 * dayMs).name, model: null, failed: 1 };
    const team = { book: "team:research", unit: "money", period: day.slice(0, 7), amount: 40 } as const;
    const rest = [team, { ...team, unit: "tokens", amount: 7 }, { ...team, book: "user:a:b", period: day }] as const;
    await limitsBookOf(store).settle(settlementOf({ gateway: newToken(), usage: [row, old], spent: rest }));
    return { lapsed, expired, spent, revoked, rotated, machines: [attic, cellar] };
  });
}
type Filled = Awaited<ReturnType<typeof fill>>;

/** Everything that a store answers about a site. */
const portrait = (place: Settings, site: Filled) =>
  inStore(place, async (store) => {
    const { keys, machines, routes, prices, state } = store;
    const judged = async ({ token }: IssuedKey) =>
      (await checkKey({ token, keys, peppers: store.peppers, nowMs: Date.now() })).outcome;
    const keyId = site.spent.record.id;
    const spends = (id: string, per: "day" | "month") => ({
      books: [bookOf({ spend: { millionths: 40, per } }, id)],
      seat: newToken(),
      tokens: 1,
      rate: { fixed: 0, perMillion: 1 },
    });
    const spent = [
      await admissionOf(limitsBookOf(store), spends("team:research", "month")),
      await admissionOf(limitsBookOf(store), spends("user:a:b", "day")),
    ];
    const admission = await admissionOf(limitsBookOf(store), {
      books: [bookOf(limits, keyId)],
      seat: newToken(),
      tokens: 1,
      rate: freeRate,
    });
    const line = await joinOnStore(await lineOnStore(`attic-${newToken().toLowerCase()}`, store), store, {
      publicKey: site.machines[0],
    });
    return {
      listed: (await keys.list()).toSorted((one, other) => (one.id < other.id ? -1 : 1)),
      lapsed: await keys.find(site.lapsed.token.id),
      peppers: await keys.peppers(),
      trail: (await keys.log({ entriesMax: 100_000 })).filter(({ machine }) => !machine?.startsWith("attic-")),
      signIns: await store.sessions.signIns(100),
      judged: await Promise.all([site.lapsed, site.expired, site.spent, site.revoked, site.rotated].map(judged)),
      site: await machines.site(),
      machines: (await machines.list()).filter(({ name }) => !name.startsWith("attic-")),
      byKey: await Promise.all(site.machines.map(async (key) => (await machines.findByKey(key))?.name)),
      byJoin: (await machines.findByJoin((await machines.find("loft"))?.join?.id ?? ""))?.name,
      seen: [...(await machines.lastSeen())],
      joinsAgain: line.outcome,
      routes: await routes.list(),
      prices: await prices.list(),
      teams: await store.teams.list(),
      people: await store.people.list(),
      usage: await openUsage(state).read({ from: "2000-01-01", to: "9999-12-31" }),
      spent: spent.map((each) => each.outcome === "refused" && each.period?.used),
      refusedBy: admission.outcome === "refused" ? admission.by : undefined,
      knows: await openKnownModels(store.state).knows("llama3", { nowMs: Date.now(), machines: ["attic"] }),
    };
  });

describe.skipIf(lentOnly("redis"))("a backup", () => {
  test("a backup moves a site from SQLite to Redis and back, with all that either store answers about it", async () => {
    const [laptop, redis, other] = [stateDir("laptop"), await redisOfOnesOwn(), stateDir("other")];
    const site = await fill(laptop);
    const told = await backUp(laptop);
    const before = await portrait(laptop, site);
    expect(before).toMatchObject({
      teams: [{ name: "research" }],
      people: [{ called: "Anna" }],
      judged: ["expired", "expired", "valid", "invalid", "valid"],
      byKey: ["attic", "cellar"],
      byJoin: "loft",
      spent: [40, 40],
      refusedBy: "budget",
      knows: "known",
      signIns: [expect.objectContaining({ name: "alice" }), expect.anything()],
      lapsed: { kind: "tombstone" },
    });
    expect(told.out).toMatch(/^records +written$/m);
    expect((await restore(redis)).out).toMatch(/^keys +7$/m);
    expect(await portrait(redis, site)).toEqual(before);

    await restore(stateDir("from-the-same"));
    await backUp(redis);
    await restore(other);
    expect(await portrait(other, site)).toEqual(before);
    for (const place of [laptop, redis]) {
      const backedUpAt = await inStore(place, ({ state }) => lastBackup(state));
      expect(Math.abs(Number(backedUpAt) - Date.now())).toBeLessThan(60_000);
    }
    expect(await inStore(other, ({ state }) => lastBackup(state))).toBeUndefined();
  });

  test("a backup moves the levels of rates from Redis to Redis", async () => {
    const [one, two] = [await redisOfOnesOwn(), await redisOfOnesOwn()];
    const { record } = await inStore(one, (store) => issueIn(store, { limits }));
    const admit = (place: Settings) =>
      inStore(place, async (store) =>
        admissionOf(limitsBookOf(store), {
          books: [bookOf(limits, record.id)],
          seat: newToken(),
          tokens: 1,
          rate: freeRate,
        }),
      );
    await admit(one);
    await backUp(one);
    await restore(two);
    expect((await admit(two)).limitStatus.requests?.remaining).toBe(8);
  });

  test("a backup of a store in Redis at which no gateway ran yet leaves its place to the site that begins there", async () => {
    const [one, two] = [await redisOfOnesOwn(), stateDir("two")];
    await inStore(one, issueIn);
    await backUp(one);
    await restore(two);
    expect((await inStore(two, ({ machines }) => machines.site())).id).toMatch(/^\w{22}$/);
  });

  test("a backup is a file for its owner only, without secrets unless it was asked for them", async () => {
    const laptop = stateDir("laptop");
    await inStore(laptop, issueIn);
    await backUp(laptop);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const unpacked = async () => gunzipSync(await readFile(file)).toString("latin1");
    expect(await unpacked()).not.toContain(testPepper);
    await backUp(laptop, "--secrets");
    expect(await unpacked()).toContain(testPepper);
    expect(await readdir(folder)).toEqual(["laptop", "site.backup"]);
  });

  test("a backup of a store without keys is refused", async () => {
    await expect(backUp(stateDir("empty"))).rejects.toThrow("There are no keys in the folder");
  });
});

describe.skipIf(lentOnly("redis")).each([
  ["SQLite", async () => stateDir("target")],
  ["Redis", redisOfOnesOwn],
])("a restore into %s", (_, open) => {
  test("needs --replace where there are keys, and leaves revoked what was revoked since", async () => {
    const place = await open();
    const [kept, lost] = [await inStore(place, issueIn), await inStore(place, issueIn)];
    await inStore(place, async (store) => [await pairOnStore("attic", store), await pairOnStore("cellar", store)]);
    await backUp(place);
    await revoke(place, lost);
    await inStore(place, async (store) => {
      await changeMachine("attic", { action: "machine_revoked" }, { ...store, actor });
      await changeMachine("cellar", { action: "machine_revoked" }, { ...store, actor });
      await removeMachine("cellar", { ...store, actor });
    });
    const later = await inStore(place, issueIn);
    await expect(restore(place)).rejects.toThrow(/is not empty \(keys: 3\): .*--replace/);
    const { err } = await restore(place, "--replace");
    expect(err).toContain(`Revoked since the backup, and revoked again: ${lost.record.id} (alice), attic, cellar`);
    await inStore(place, async ({ keys, machines }) => {
      const states = (await keys.list()).map((record) => [record.id, record.revokedAt !== undefined]);
      expect(Object.fromEntries(states)).toEqual({ [kept.record.id]: false, [lost.record.id]: true });
      expect((await keys.find(later.record.id)).kind).toBe("absent");
      expect((await machines.list()).map(({ revokedAt }) => typeof revokedAt)).toEqual(["number", "number"]);
      const trail = (await keys.log({ entriesMax: 3 })).map(({ action }) => action);
      expect(trail).toEqual(["revoked", "machine_revoked", "machine_revoked"]);
    });
  });

  test("leaves a key revoked that an older backup, restored in between, did not have", async () => {
    const [place, older] = [await open(), join(folder, "older.backup")];
    await inStore(place, issueIn);
    await backUp(place);
    await copyFile(file, older);
    const lost = await inStore(place, issueIn);
    await backUp(place);
    await revoke(place, lost);
    const newer = await readFile(file);
    await copyFile(older, file);
    await restore(place, "--replace");
    await writeFile(file, newer);
    await restore(place, "--replace");
    const found = await inStore(place, ({ keys }) => keys.find(lost.record.id));
    expect(found).toMatchObject({ record: { revokedAt: expect.any(Number) } });
  });

  test("is noticed by a gateway that runs, which then knows the keys of the backup alone", async () => {
    const place = await open();
    const { TRUNKLINE_REDIS_URL: redisUrl, TRUNKLINE_STATE_DIR: inFolder } = place;
    await using gateway = await startGatewayInProcess(redisUrl === undefined ? { stateDir: inFolder } : { redisUrl });
    const kept = await gateway.issue();
    await backUp(place);
    const later = await gateway.issue();
    const statusOf = async ({ endpoint }: typeof kept) => (await endpoint.models()).status;
    const untilStatus = (key: typeof kept, status: number) =>
      vi.waitFor(async () => expect(await statusOf(key)).toBe(status), { timeout: 5_000 });
    await untilStatus(kept, 200);
    await untilStatus(later, 200);
    await restore(place, "--replace");
    await untilStatus(later, 401);
    await untilStatus(kept, 200);
    await untilStatus(await gateway.issue(), 200);
  });
});

describe.skipIf(lentOnly("redis"))("a restore into a Redis that was emptied", () => {
  test("a restore into a Redis that was emptied adds the usage of the backup to what was booked since, once, and keeps what was revoked since", async () => {
    const redis = await redisOfOnesOwn();
    const { spent, rotated } = await fill(redis);
    await backUp(redis);
    const client = new Redis(redis.url);
    onTestFinished(() => client.disconnect());
    await client.flushall();
    const row = rowOf({ day: budgetPeriodAt("day", Date.now()).name, keyId: spent.record.id, promptTokens: 7 });
    await inStore(redis, (store) => limitsBookOf(store).settle(settlementOf({ gateway: newToken(), usage: [row] })));
    await revoke(redis, rotated);
    expect((await restore(redis)).err).toContain(rotated.record.id);
    // As after a restore that was killed before it had founded the store.
    await client.del("trunkline:pepper");
    await restore(redis);
    const sums = await inStore(redis, async ({ state }) =>
      (await openUsage(state).read({ from: row.day, to: row.day })).rows.map((each) => each.promptTokens),
    );
    expect(sums).toEqual([tokensUsed + 7]);
  });
});

describe("a restore that cannot be", () => {
  const other = { TRUNKLINE_KEY_PEPPER: "another pepper that is long enough to be one" };
  beforeEach(async () => {
    const laptop = stateDir("laptop");
    await inStore(laptop, issueIn);
    await backUp(laptop);
  });
  const repack = async (change: (database: DatabaseSync) => void): Promise<void> => {
    const unpacked = join(folder, "unpacked.db");
    await writeFile(unpacked, gunzipSync(await readFile(file)));
    const database = new DatabaseSync(unpacked);
    change(database);
    database.close();
    await writeFile(file, gzipSync(await readFile(unpacked)));
  };
  const overwrite = async (change: (bytes: Buffer) => Buffer): Promise<void> =>
    writeFile(file, change(await readFile(file)));

  const zeros = Buffer.alloc(300 * 1_048_576);
  const nothing = async (): Promise<void> => undefined;
  test.each<[string, () => Promise<void>, string | RegExp, Settings?]>([
    ["a file that was cut", () => overwrite((bytes) => bytes.subarray(0, -100)), "take another copy"],
    ["a changed byte", () => overwrite((bytes) => bytes.fill(bytes[500] === 1 ? 2 : 1, 500, 501)), "take another copy"],
    ["a text", () => writeFile(file, "no backup"), "take another copy"],
    ["an empty database", () => writeFile(file, gzipSync("")), "there are no keys in it"],
    ["300 MiB of zeros", () => writeFile(file, gzipSync(zeros)), "it does not begin as a backup does"],
    [
      "300 MiB of zeros behind a backup",
      () => overwrite((bytes) => gzipSync(Buffer.concat([gunzipSync(bytes), zeros]))),
      /unpacks to more than the \d+ bytes that its beginning names/,
    ],
    [
      "300 MiB of zeros in a backup that names as many",
      () =>
        overwrite((bytes) => {
          const unpacked = Buffer.concat([gunzipSync(bytes), zeros]);
          unpacked.writeUInt32BE(unpacked.byteLength / unpacked.readUInt16BE(16), 28);
          return gzipSync(unpacked);
        }),
      "it unpacks to more than 100 times its size (unpackedTimesMax)",
    ],
    ["a missing table", () => repack((database) => database.exec("DROP TABLE routes")), "no such table: routes"],
    [
      "a record that no store reads",
      () => repack((database) => database.exec("UPDATE keys SET record = json_set(record, '$.scopes', 5)")),
      "take another copy",
    ],
    [
      "a newer version",
      () => repack((database) => database.exec("PRAGMA user_version = 99")),
      "is from a newer Trunkline",
    ],
    ["another pepper", nothing, "under another pepper than that of TRUNKLINE_KEY_PEPPER", other],
    ["no pepper", nothing, "set TRUNKLINE_KEY_PEPPER to that of their site", {}],
  ])("a restore that cannot be because of %s says so, and touches no store", async (_, damage, told, env) => {
    await damage();
    const target = stateDir("target", env);
    await expect(restore(target)).rejects.toThrow(told);
    await expect(stat(target["TRUNKLINE_STATE_DIR"])).rejects.toThrow("ENOENT");
  });
});
