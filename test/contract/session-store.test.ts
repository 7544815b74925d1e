import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { keyId } from "#shared/keys/key-token.ts";
import { sessionId } from "#shared/keys/session-token.ts";
import type { UnreadRecord } from "#shared/records/key-store.ts";
import { Peppers, pepperText } from "#shared/keys/pepper.ts";
import { readTrail, type SignIn, signInsMax } from "#shared/records/sign-in.ts";
import {
  findMemberSession,
  findSession,
  linkMs,
  makeMemberSession,
  makeSession,
  sessionMs,
  sessionsPerKeyMax,
  type SessionStore,
} from "#shared/records/session-record.ts";
import { SqliteSessionStore } from "#shared/store/session-stores.ts";
import { openStateDatabase } from "#shared/store/state-database.ts";
import type { SomeServer } from "../harness/found-servers.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { TurnableClock } from "../harness/turnable-clock.ts";
import { type KeyPlace, redisPlace, sqlitePlace } from "./key-store-place.ts";

let server: SomeServer;
beforeAll(async () => void (server = await redisUrl()));
afterAll(() => server.stop());

const peppers = new Peppers(pepperText.parse("a pepper that is long enough to be one"));
const key = { id: keyId.parse("0aB1cD2eF3gH"), expiresAt: Number.MAX_SAFE_INTEGER };
const link = { kind: "link", role: "admin", key } as const;
const session = { kind: "session", role: "viewer", key, address: "192.0.2.7", agent: "a browser" } as const;

describe.each<[string, () => Promise<KeyPlace>]>([
  ["Redis", () => redisPlace(server.url)],
  ["SQLite", sqlitePlace],
])("sessions in %s", (_, makePlace) => {
  async function open() {
    const place = await makePlace();
    const clock = new TurnableClock({ wallMs: 1_800_000_000_000 });
    return { place, clock, sessions: await place.openSessions(), peppers };
  }

  test("a session is found by its token at every gateway until it expires", async () => {
    const own = await open();
    const { token, record } = await makeSession(session, own);
    const other = { ...own, sessions: await own.place.openSessions() };
    expect(await findSession(token.text, "session", other)).toEqual(record);
    own.clock.advance(sessionMs - 1);
    expect(await findSession(token.text, "session", other)).toEqual(record);
    own.clock.advance(1);
    expect(await findSession(token.text, "session", other)).toBeUndefined();
  });

  test("a token with another secret, or of another kind, finds nothing", async () => {
    const own = await open();
    const { token } = await makeSession(link, own);
    expect(
      await findSession(`${token.text.slice(0, -1)}${token.text.endsWith("0") ? "1" : "0"}`, "link", own),
    ).toBeUndefined();
    expect(await findSession(token.text, "session", own)).toBeUndefined();
    expect(await findSession(token.text.replace("_link_", "_session_"), "session", own)).toBeUndefined();
    expect(await findSession(token.text, "link", own)).toBeDefined();
  });

  test("a record whose role or key was altered in the store finds nothing", async () => {
    const own = await open();
    const { token, record } = await makeSession(session, own);
    for (const altered of [{ role: "admin" as const }, { key: keyId.parse("zzzzzzzzzzzz") }]) {
      await own.sessions.remove(record.id);
      await own.sessions.write({ ...record, ...altered }, own.clock.wall());
      expect(await findSession(token.text, "session", own)).toBeUndefined();
    }
  });

  test("a member's session is found as no session of the console, and its person cannot be altered", async () => {
    const own = await open();
    const { token, record } = await makeMemberSession({ person: "a".repeat(64), address: "192.0.2.7" }, own);
    expect(await findMemberSession(token.text, own)).toEqual(record);
    expect(await findSession(token.text, "session", own)).toBeUndefined();
    const console = await makeSession(session, own);
    expect(await findMemberSession(console.token.text, own)).toBeUndefined();
    const renamed = (text: string, kind: string) => text.replace(/_[a-z]+_/, `_${kind}_`);
    expect(await findSession(renamed(token.text, "session"), "session", own)).toBeUndefined();
    expect(await findMemberSession(renamed(console.token.text, "member"), own)).toBeUndefined();
    await own.sessions.remove(record.id);
    await own.sessions.write({ ...record, person: "b".repeat(64) }, own.clock.wall());
    expect(await findMemberSession(token.text, own)).toBeUndefined();
  });

  test("exactly one of several gateways spends a link", async () => {
    const own = await open();
    const { record } = await makeSession(link, own);
    const other = await own.place.openSessions();
    const spent = await Promise.all([own.sessions.remove(record.id), other.remove(record.id), other.remove(record.id)]);
    expect(spent.filter(Boolean)).toHaveLength(1);
  });

  test("a new session drops those that have expired, and the list has the oldest first", async () => {
    const own = await open();
    await makeSession(link, own);
    own.clock.advance(linkMs);
    const first = await makeSession(session, own);
    own.clock.advance(1);
    const second = await makeSession(session, own);
    expect(await own.sessions.list()).toEqual([first.record, second.record]);
  });

  test("a session of a newer version is left out of the list and named there, and hides no other", async () => {
    const own = await open();
    const { record } = await makeSession(session, own);
    const newer = { ...record, id: sessionId.parse("zzzzzzzzzzzz"), onlyOnSundays: true };
    await own.sessions.write(newer, own.clock.wall());
    const unread: UnreadRecord[] = [];
    expect(await own.sessions.list(unread)).toEqual([record]);
    expect(unread).toEqual([{ name: newer.id, stored: newer }]);
  });

  test("a key has a bounded number of sessions, and the oldest ends", async () => {
    const own = await open();
    const first = await makeSession(session, own);
    for (let made = 1; made <= sessionsPerKeyMax; made += 1) {
      own.clock.advance(1);
      await makeSession(session, own);
    }
    expect(await own.sessions.list()).toHaveLength(sessionsPerKeyMax);
    expect(await own.sessions.find(first.record.id)).toBeUndefined();
  });

  test("sign-ins stand in the trail in order, also in that of one key, for 400 days", async () => {
    const { place, sessions } = await open();
    const stores = { keys: await place.open(), sessions };
    const at = 1_800_000_000_000;
    const signIn = (day: number, of = key.id): SignIn => ({
      at: at + day * 86_400_000,
      by: `admin ${of}, session 0aB1cD2eF3gH`,
      action: "signed_in",
      key: of,
      name: "ada",
      detail: { role: "admin", address: "192.0.2.7" },
      request: `req_${day}`,
    });
    const another = keyId.parse("zzzzzzzzzzzz");
    const kept = [signIn(1), signIn(2, another), signIn(3), signIn(400)];
    for (const each of [signIn(0), ...kept]) await sessions.noteSignIn(each);
    expect(await readTrail(stores, { entriesMax: 10 })).toEqual(kept);
    expect(await readTrail(stores, { entriesMax: 2 })).toEqual(kept.slice(2));
    expect(await readTrail(stores, { entriesMax: 2, keys: [another] })).toEqual([signIn(2, another)]);
    expect(await sessions.list()).toEqual([]);
  });

  test("the store has no token, and a session ends no later than its key", async () => {
    const own = await open();
    const { token, record } = await makeSession({ ...session, key: { ...key, expiresAt: own.clock.wall() + 5 } }, own);
    expect(JSON.stringify(await own.sessions.list())).not.toContain(token.text.slice(-32));
    expect(record.expiresAt).toBe(own.clock.wall() + 5);
  });
});

const entry = { by: "admin", action: "signed_in", key: key.id, name: "ada" } as const;
const times = Array.from({ length: signInsMax }, (_, place) => place + 1);

async function addTwo(sessions: SessionStore): Promise<void> {
  for (const more of [1, 2]) await sessions.noteSignIn({ ...entry, at: signInsMax + more });
  const left = await sessions.signIns(signInsMax * 2);
  expect([left.length, left[0]?.at, left.at(-1)?.at]).toEqual([signInsMax, 3, signInsMax + 2]);
}

test("Redis keeps the latest 10,000 sign-ins", async () => {
  const sessions = await (await redisPlace(server.url)).openSessions();
  // All at once would be more than a busy Redis answers in time.
  for (let from = 0; from < times.length; from += 500)
    await Promise.all(times.slice(from, from + 500).map((at) => sessions.noteSignIn({ ...entry, at })));
  await addTwo(sessions);
});

test("SQLite keeps the latest 10,000 sign-ins", async () => {
  const folder = folderOfTest();
  const database = openStateDatabase(folder);
  onTestFinished(async () => {
    database.close();
  });
  // One by one they would take a disk ten seconds.
  database.change(
    "fill the list",
    (sql) => sql.run`INSERT INTO sign_ins (at, entry) SELECT value, json_set(${JSON.stringify(entry)}, '$.at', value)
      FROM json_each(${JSON.stringify(times)})`,
  );
  await addTwo(new SqliteSessionStore(database));
});
