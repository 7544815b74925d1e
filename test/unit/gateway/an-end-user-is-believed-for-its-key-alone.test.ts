import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { Peppers, pepperText } from "#shared/keys/pepper.ts";
import { dayMs } from "#shared/process/clock.ts";
import type { Book } from "#shared/records/book.ts";
import type { KeyRecord } from "#shared/records/key-record.ts";
import { type EndUserUse, namesOfEndUsers } from "#shared/usage/end-users.ts";
import { reads } from "../../../services/gateway/apis/reads.ts";
import { EndUserBooks, type NamedUser } from "../../../services/gateway/people/end-users.ts";
import { readRequest } from "../../../services/gateway/requests/read-request.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";
import { key } from "./routes-and-keys.ts";

const peppers = new Peppers(pepperText.parse("a pepper that is long enough to be one"));
const ofUsers = { endUsers: "field", perUserRpm: 2 } as const;

/** The end users of a gateway whose store notes all but those that it is told to refuse. */
function gateway() {
  const notes: EndUserUse[] = [];
  const store: { answer: "noted" | "full" | "away" } = { answer: "noted" };
  const endUsers = {
    note: async (use: EndUserUse) => {
      notes.push(use);
      if (store.answer === "away") throw new Fault("backend_unavailable", { message: "Redis is away." });
      return store.answer === "noted";
    },
    sealedNames: async (users: readonly string[]) =>
      users.map((user) => notes.find(({ keyId, digest }) => user === `${keyId}:${digest}`)?.sealed),
  };
  const clock = new TurnableClock({ wallMs: Date.parse("2026-11-29T12:00:00Z") });
  const books = new EndUserBooks({ endUsers, peppers, clock });
  /** Returns for whom a request counts, and the book that it counts in. */
  const enter = async (name: string | undefined, terms: Partial<KeyRecord> = ofUsers, headers = {}) => {
    const entered: { endUser?: string; book?: Book | undefined } = {};
    const isFor = (endUser: string, book: Book | undefined) => Object.assign(entered, { endUser, book });
    const user: NamedUser | undefined = name === undefined ? undefined : { field: "user", name };
    await books.enter({ key: { ...key({}), ...terms }, isFor }, headers, { user, ignored: [] });
    return entered;
  };
  const shown = async (endUser = "") => (await namesOfEndUsers([endUser], { endUsers, peppers })).get(endUser);
  return { notes, store, clock, enter, shown };
}

test("a user counts in a book of its own for the key that names users, and nobody counts for other keys", async () => {
  const { enter, notes, shown } = gateway();
  const anna = await enter("anna");
  expect(anna.book).toEqual({ id: `user:${anna.endUser}`, limits: { requestsPerMinute: 2 }, noun: "This user" });
  expect(await shown(anna.endUser)).toBe("anna");
  expect((await enter("bert")).endUser).not.toBe(anna.endUser);
  expect(await enter(undefined)).toEqual({});
  expect(await enter("anna", {}, { "x-openwebui-user-id": "anna" })).toEqual({});
  expect(JSON.stringify(notes)).not.toContain("anna");
});

test("either header names the user for a key that believes headers, and its fields then mean nothing", async () => {
  const { enter, shown } = gateway();
  const names: (string | undefined)[] = [];
  for (const headers of [{ "x-openwebui-user-id": "carl" }, { "x-litellm-end-user-id": "dora" }, {}])
    names.push(await shown((await enter("anna", { endUsers: "header" }, headers)).endUser));
  expect(names).toEqual(["carl", "dora", undefined]);
});

test("a user is noted in the store once a day, with the beginning of the period of its budget", async () => {
  const { enter, notes, clock } = gateway();
  const terms = { ...ofUsers, perUserBudget: { tokens: 100, per: "month" } } as const;
  for (let times = 0; times < 3; times += 1) await enter("anna", terms);
  clock.advance(dayMs);
  await enter("anna", terms);
  expect(notes.map(({ dayAtMs, periodAtMs }) => [dayAtMs, periodAtMs].map((ms) => new Date(ms).toJSON()))).toEqual([
    ["2026-11-29T00:00:00.000Z", "2026-11-01T00:00:00.000Z"],
    ["2026-11-30T00:00:00.000Z", "2026-11-01T00:00:00.000Z"],
  ]);
});

test("all users of a key for whom the store has no place share one book", async () => {
  const { enter, store } = gateway();
  store.answer = "full";
  const [one, other] = [await enter("anna"), await enter("bert")];
  expect(one).toMatchObject({
    book: { id: expect.stringMatching(/^user:\w+:others$/), limits: { requestsPerMinute: 2 } },
  });
  expect(other).toEqual(one);
});

test("users have books of their own while the store is away, and it is asked no more than once a second", async () => {
  const { enter, store, notes, clock } = gateway();
  store.answer = "away";
  const users: (string | undefined)[] = [];
  for (const name of ["anna", "bert", "anna"]) users.push((await enter(name)).endUser);
  expect([new Set(users).size, notes.length]).toEqual([2, 1]);
  store.answer = "noted";
  clock.advance(1_000);
  expect([(await enter("anna")).endUser, notes.length]).toEqual([users[0], 2]);
});

const user = "anna@example.org";
test.each([
  ["chat", { messages: [{ role: "user", content: "Hi" }], safety_identifier: user, user: "b" }, "safety_identifier"],
  ["completion", { prompt: "Hi", user }, "user"],
  ["response", { input: "Hi", user }, "user"],
  [
    "message",
    { max_tokens: 9, messages: [{ role: "user", content: "Hi" }], metadata: { user_id: user } },
    "metadata.user_id",
  ],
])("the reader of a %s finds its end user, of whom its job says nothing", (kind, fields, field) => {
  const bytes = Buffer.from(JSON.stringify({ model: "llama3", ...fields }));
  const read = readRequest(reads, { kind, bytes });
  expect(read.user).toEqual({ field, name: user });
  expect(Buffer.from(read.body).toString()).not.toContain(user);
});
