import { bookOf } from "../../../harness/book-of-a-test.ts";
import { writerOf } from "../writer-of-a-test.ts";
import { modelOf } from "../machines-of-a-fleet.ts";
import { offerOf } from "../offers.ts";
import { booksOfATest, requestFor } from "../request-of-a-test.ts";
import { beforeEach, expect, test } from "vitest";
import type { KeyLimits } from "#shared/records/key-record.ts";
import { freePrices } from "../../../../services/gateway/requests/request-prices.ts";
import {
  type Admission,
  type Demand,
  emptyReservation,
  type Limits,
} from "../../../../services/gateway/limits/limits.ts";
import { windowTokensMax } from "../../../../services/gateway/limits/token-estimates.ts";
import type { ModelRequest } from "../../../../services/gateway/requests/request.ts";
import { noUsage, type UsageRow } from "#shared/usage/usage.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";
import { payloadOf, plainly } from "../../../harness/answer-payload.ts";
import { StoreOfATest } from "../keys/keys-of-a-test.ts";
import type { AnswerCourse } from "../../../../services/gateway/jobs/answer-course.ts";

let clock: TurnableClock;
let books: ReturnType<typeof booksOfATest>;
let limits: Limits;
beforeEach(() => {
  clock = new TurnableClock();
  books = booksOfATest(clock);
  const { local } = books;
  limits = {
    admit: async (demand) => local.admit(demand),
    limitStatus: (key) => local.limitStatus(key),
    occupy: (demand) => emptyReservation(demand, "here"),
  };
});

const told = writerOf();
const rendering = { streamed: true, render: plainly };
function open(keyLimits?: KeyLimits): { account: ModelRequest; keyId: string } {
  const { record } = new StoreOfATest().add({ expiresAt: 1, ...(keyLimits !== undefined && { limits: keyLimits }) });
  return { account: requestFor(record, { limits, settlements: books.settlements, clock }), keyId: record.id };
}
const ceiling = { promptTokens: 1_000, prompts: 1, answers: 1, answerTokens: 100 };
const demanded = { promptTokens: 10, tokens: 110, ceiling, rate: freePrices };
const admit = (account: ModelRequest, signal = new AbortController().signal) => account.admit(demanded, signal);

/** The request is admitted, and offered to a machine. */
async function offered(account: ModelRequest, more: Parameters<typeof offerOf>[1] = {}): Promise<AnswerCourse> {
  await admit(account);
  const following = account.answer.following(told, rendering);
  following.onOffer(offerOf("attic", more));
  return following;
}

const bookedRows = (): readonly UsageRow[] => books.written.flatMap((settlement) => settlement.usage);

async function usage(): Promise<UsageRow[]> {
  await clock.advanceAwaiting(1_000);
  return bookedRows().filter((row) => row.keyId !== "");
}

test("the usage of a request is what its machine says, with the machine, the first token, and how it ended", async () => {
  const { account, keyId } = open();
  account.asksFor({ model: "llama3", streamed: true });
  const following = await offered(account);
  clock.advance(40);
  following.on({ kind: "accepted" });
  clock.advance(60);
  following.on({ kind: "data", payload: payloadOf({ kind: "text", text: "a" }), outputTokens: 1 });
  clock.advance(100);
  following.on({ kind: "usage", usage: { promptTokens: 12, completionTokens: 34 } });
  account.endedIn("ok");
  account.close(200);
  const counts = { requests: 1, failed: 0, promptTokens: 12, completionTokens: 34, answered: 1 };
  expect(await usage()).toEqual([
    {
      ...noUsage,
      day: "2026-01-01",
      keyId,
      model: "llama3",
      ...counts,
      firstTokenMs: 100,
      durationMs: 200,
    },
  ]);
  expect(bookedRows()).toContainEqual(expect.objectContaining({ keyId: "", model: null, machine: "attic", ...counts }));
  const answer = { machine: "attic", firstTokenMs: 100, endedMs: 200, promptTokens: 12, completionTokens: 34 };
  expect(account.facts).toMatchObject({ key: keyId, model: "llama3", outcome: "ok", answer });
});

test("the usage of a request has no first token of an answer that its client gets whole", async () => {
  const { account } = open();
  account.asksFor({ model: "llama3", streamed: false });
  const following = await offered(account);
  clock.advance(100);
  following.on({ kind: "data", payload: payloadOf({ kind: "text", text: "a" }), outputTokens: 1 });
  account.endedIn("ok");
  account.close(200);
  expect(await usage()).toMatchObject([{ requests: 1, answered: 0, firstTokenMs: 0, durationMs: 100 }]);
  expect(account.facts.answer?.firstTokenMs).toBeUndefined();
});

test("the usage of a request is what was delivered when the client leaves: the tokens so far, and the prompt as it was estimated", async () => {
  const { account } = open();
  const following = await offered(account);
  following.on({ kind: "data", payload: payloadOf({ kind: "text", text: "a" }), outputTokens: 7 });
  account.close(200);
  expect(await usage()).toMatchObject([{ failed: 1, promptTokens: 10, completionTokens: 7 }]);
  expect(account.facts.outcome).toBe("client_closed");
});

test.each([
  ["before its machine said anything", undefined, { promptTokens: 10, completionTokens: 0 }],
  ["while its machine reads the prompt", ["prefill", 0], { promptTokens: 10, completionTokens: 0 }],
  ["while its machine answers", ["running", 7], { promptTokens: 10, completionTokens: 7 }],
  ["while its machine claims more than the request allows", ["running", 1e9], { completionTokens: 100 }],
  ["while it is in its machine's queue", ["queued", 7], { promptTokens: 0, completionTokens: 0 }],
  ["while its model is loaded", ["loading", 7], { promptTokens: 0, completionTokens: 0 }],
] as const)("a whole answer that is left %s is booked for what a GPU worked", async (_, row, counts) => {
  const { account } = open();
  const following = await offered(account);
  following.on({ kind: "accepted" });
  if (row !== undefined) following.on({ kind: "beat", row: ["job", row[0], 0, row[1], 0, 0], load: undefined });
  account.close(200);
  expect(await usage()).toMatchObject([{ requests: 1, failed: 1, answered: 0, ...counts }]);
});

test("a whole answer that failed on its machine is booked with nothing, whatever the machine had made of it", async () => {
  const { account } = open();
  const following = await offered(account);
  following.on({ kind: "accepted" });
  following.on({ kind: "beat", row: ["job", "running", 0, 50, 0, 0], load: undefined });
  account.endedIn("upstream_error");
  account.close(200);
  expect(await usage()).toMatchObject([{ promptTokens: 0, completionTokens: 0 }]);
});

test("the usage of a request is written once when the client left before its request was read, which takes nothing then", async () => {
  const { account } = open({ concurrency: 1, budget: { tokens: 1_000, per: "day" } });
  account.close(200);
  const left = AbortSignal.abort(new Error("the client left"));
  await expect(async () => admit(account, left)).rejects.toThrow("the client left");
  expect(await usage()).toMatchObject([{ requests: 1, failed: 1, promptTokens: 0, completionTokens: 0 }]);
  expect(books.settled).toEqual([]);
  const { account: next } = open({ concurrency: 1 });
  expect(await admit(next)).toMatchObject({ fault: undefined });
});

test("the usage of a request is written once, however often a request ends, and as it ended first", async () => {
  const { account } = open();
  account.endedIn("upstream_timeout");
  account.endedIn("ok");
  account.close(200);
  account.close(200);
  expect(await usage()).toMatchObject([{ requests: 1, failed: 1, model: null }]);
  expect(account.facts.outcome).toBe("upstream_timeout");
});

test.each(["model_not_found", "backend_unavailable"] as const)(
  "the usage of a request that ended in %s is counted without the model, which its client may have invented",
  async (outcome) => {
    const { account } = open();
    account.asksFor({ model: "llama3", streamed: false });
    account.endedIn(outcome);
    account.close(200);
    expect(await usage()).toMatchObject([{ model: null }]);
  },
);

test("the usage of a request for a model that is away, or that a limit keeps from it, is counted for that model", async () => {
  for (const outcome of ["agent_offline", "rate_limit_requests"] as const) {
    const { account } = open();
    account.asksFor({ model: "llama3", streamed: false });
    account.endedIn(outcome);
    account.close(200);
  }
  expect(await usage()).toMatchObject([{ model: "llama3" }, { model: "llama3" }]);
});

test.each([
  ["its ceiling", ceiling, 4_096, { promptTokens: 1_000, completionTokens: 100 }],
  ["its window", { ...ceiling, answerTokens: undefined }, 300, { promptTokens: 300, completionTokens: 300 }],
  [
    "the largest window that is believed",
    { ...ceiling, promptTokens: 1e12, answerTokens: undefined },
    1e15,
    { promptTokens: windowTokensMax, completionTokens: windowTokensMax },
  ],
])("a machine is believed only up to %s", async (_, believed, window, counts) => {
  const { account } = open();
  await account.admit({ ...demanded, ceiling: believed }, new AbortController().signal);
  const following = account.answer.following(told, rendering);
  following.onOffer(offerOf("attic", { model: modelOf("llama3", { context_window: window }) }));
  following.on({ kind: "accepted" });
  following.on({ kind: "usage", usage: { promptTokens: Number.MAX_SAFE_INTEGER, completionTokens: 1e12 } });
  account.close(200);
  expect(await usage()).toMatchObject([counts]);
});

const concurrency = { concurrency: 1 };

test("the reservation of a request on its key is settled with what it took", async () => {
  const { account } = open({ tokensPerMinute: 1_000 });
  const following = await offered(account);
  following.on({ kind: "accepted" });
  following.on({ kind: "usage", usage: { promptTokens: 12, completionTokens: 34 } });
  account.close(200);
  expect(books.settled).toMatchObject([{ ran: true, usedTokens: 46, reservation: { held: [{ tokens: 110 }] } }]);
});

test("the reservation of a request on its key is given back whole when no machine took it", async () => {
  const { account } = open({ requestsPerMinute: 1 });
  await admit(account);
  account.endedIn("agent_offline");
  account.close(200);
  expect(books.settled).toMatchObject([{ ran: false, usedTokens: 0, usedMoney: 0 }]);
});

test("the reservation of a request on its key is given back when the client leaves while it is being admitted", async () => {
  const asked = Promise.withResolvers<void>();
  const slow = limits;
  limits = {
    ...slow,
    admit: async (demand: Demand): Promise<Admission> => {
      await asked.promise;
      return slow.admit(demand);
    },
  };
  const { account } = open(concurrency);
  const admitting = admit(account);
  account.close(200);
  expect(books.settled).toEqual([]);
  asked.resolve();
  await admitting;
  expect(await usage()).toHaveLength(1);
  expect(books.settled).toMatchObject([{ ran: false }]);
});

test("a request that takes from its key is admitted at the second attempt when a seat was just left at another gateway, and refused after it", async () => {
  const { account } = open(concurrency);
  const book = bookOf(concurrency);
  const refusal = { outcome: "refused", by: "concurrency", book, waitMs: 1_000, limitStatus: {} } as const;
  const real = limits;
  let attempts = 0;
  limits = { ...real, admit: async (demand) => ((attempts += 1) === 1 ? refusal : real.admit(demand)) };
  const { account: second } = open(concurrency);
  const admitted = admit(second);
  await clock.advanceAwaiting(150);
  expect((await admitted).fault).toBeUndefined();
  expect(attempts).toBe(2);
  account.close(200);
});
