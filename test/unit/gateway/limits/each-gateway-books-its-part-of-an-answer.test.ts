import { writerOf } from "../writer-of-a-test.ts";
import { beforeEach, expect, test, vi } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import type { AnswerRenderer } from "../../../../services/gateway/jobs/answer-parts.ts";
import { resumedJob } from "../../../../services/gateway/jobs/resume-answer.ts";
import { PriceTable } from "#shared/prices/price-table.ts";
import { freePrices, pricesOf } from "../../../../services/gateway/requests/request-prices.ts";
import type { ModelRequest } from "../../../../services/gateway/requests/request.ts";
import { staying } from "../../../../services/gateway/requests/resumable-answer.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";
import { payloadOf } from "../../../harness/answer-payload.ts";
import { StoreOfATest } from "../keys/keys-of-a-test.ts";
import { offerOf } from "../offers.ts";
import { booksOfATest, requestFor } from "../request-of-a-test.ts";

const nothing: AnswerRenderer = { push: () => new Uint8Array(), end: () => new Uint8Array() };
const some: AnswerRenderer = { push: () => Buffer.from("x"), end: () => new Uint8Array() };

let clock: TurnableClock;
let books: ReturnType<typeof booksOfATest>;
beforeEach(() => {
  clock = new TurnableClock();
  books = booksOfATest(clock);
});

function open(headers = {}): ModelRequest {
  const { record } = new StoreOfATest().add({ expiresAt: 1 });
  const account = requestFor(record, { settlements: books.settlements, clock, headers });
  account.asksFor({ model: "llama3", streamed: true });
  return account;
}

const ceiling = { promptTokens: 10, prompts: 1, answers: 1, answerTokens: 10 };

async function booked(): Promise<{ requests: number; failed: number; promptTokens: number; completionTokens: number }> {
  await clock.advanceAwaiting(1_000);
  const sum = { requests: 0, failed: 0, promptTokens: 0, completionTokens: 0 };
  for (const row of books.written.flatMap(({ usage }) => usage.filter(({ keyId }) => keyId !== ""))) {
    for (const field of ["requests", "failed", "promptTokens", "completionTokens"] as const) sum[field] += row[field];
  }
  return sum;
}

const follow = (account: ModelRequest, renderer = some) =>
  account.answer.following(writerOf(), { streamed: true, render: () => renderer });
const resumed = (countedTokens: number) => ({ answer: "a", created: 1, model: "llama3", countedTokens });

test("an answer that another gateway goes on with is one request, with its prompt and the tokens that came to each of the two", async () => {
  const first = open();
  const large = { ...ceiling, promptTokens: 1_000, answerTokens: 100 };
  await first.admit({ promptTokens: 10, tokens: 110, ceiling: large, rate: freePrices }, new AbortController().signal);
  const before = follow(first);
  before.onOffer(offerOf("attic"));
  before.on({ kind: "accepted", state: "running" });
  before.on({ kind: "data", payload: payloadOf({ kind: "text", text: "a" }), outputTokens: 40 });
  before.on({ kind: "moved", countedTokens: before.countTokens() });
  first.close(499);
  const second = open();
  const after = follow(second);
  after.attempts(resumedJob(after, () => offerOf("attic")));
  after.on({ kind: "accepted", state: "running", resumed: resumed(40) });
  after.on({ kind: "usage", usage: { promptTokens: 10, completionTokens: 90 } });
  second.endedIn("ok");
  second.close(200);
  expect(await booked()).toEqual({ requests: 1, failed: 0, promptTokens: 10, completionTokens: 90 });
});

test("an answer that another gateway goes on with is booked as far as it came also where its client has it all already, and leaves again", async () => {
  const account = open();
  const course = follow(account, nothing);
  course.attempts(resumedJob(course, () => offerOf("attic")));
  course.on({ kind: "accepted", state: "running", resumed: resumed(5) });
  course.on({ kind: "data", payload: payloadOf({ kind: "text", text: "a" }), outputTokens: 500 });
  account.close(499);
  expect(await booked()).toMatchObject({ requests: 0, failed: 1, completionTokens: 495 });
});

test("a request that resumes an answer is no request and no failure where its client gives it up before the machine has answered", async () => {
  const account = open({ "last-event-id": "attic.x.1" });
  account.resumes({ ...ceiling, answerTokens: undefined }, freePrices);
  follow(account);
  account.close(499);
  expect(await booked()).toMatchObject({ requests: 0, failed: 0 });
});

test("a request that resumes an answer is booked with no more tokens than it may have, whatever its machine reports", async () => {
  const account = open();
  account.resumes(ceiling, freePrices);
  const course = follow(account);
  course.attempts(resumedJob(course, () => offerOf("attic")));
  course.on({ kind: "accepted", state: "running", resumed: resumed(0) });
  course.on({ kind: "usage", usage: { promptTokens: 5, completionTokens: 50_000_001 } });
  account.endedIn("ok");
  account.close(200);
  expect(await booked()).toMatchObject({ completionTokens: 10 });
});

test("a request that resumes an answer counts with the book no further than its machine was told, and as the machine says once the answer moved", async () => {
  const account = open();
  const course = follow(account);
  course.onOffer(offerOf("attic"));
  course.on({ kind: "accepted", state: "running" });
  course.on({ kind: "data", payload: payloadOf({ kind: "text", text: "a" }), outputTokens: 40 });
  expect(course.countTokens()).toBe(40);
  course.on({ kind: "data", payload: payloadOf({ kind: "text", text: "a" }), outputTokens: 70 });
  expect(account.usedSoFar()).toMatchObject({ completionTokens: 40 });
  course.on({ kind: "moved", countedTokens: 50 });
  account.close(499);
  expect(await booked()).toMatchObject({ requests: 1, failed: 0, completionTokens: 50 });
});

test("an answer that goes on at another gateway, or whose gateway is killed, costs what its booked tokens cost, and its request once", async () => {
  const table = new PriceTable([{ name: "*", input: 1_000_000, cached: 0, output: 2_000_000, request: 500 }]);
  const targets = [{ modelId: "llama3", machines: undefined }];
  const rate = pricesOf({ promptTokens: 10, targets }, table);
  const first = open();
  const large = { ...ceiling, promptTokens: 1_000, answerTokens: 100 };
  await first.admit({ promptTokens: 10, tokens: 110, ceiling: large, rate }, new AbortController().signal);
  const before = follow(first);
  before.onOffer(offerOf("attic"));
  expect(first.usedSoFar()).toBeUndefined();
  before.on({ kind: "accepted", state: "queued" });
  expect(first.usedSoFar()).toMatchObject({ requests: 1, cost: 0 });
  before.on({ kind: "data", payload: payloadOf({ kind: "text", text: "a" }), outputTokens: 40 });
  expect(first.usedSoFar()).toMatchObject({ completionTokens: 40, cost: 500 + 10 + 80 });
  before.on({ kind: "moved", countedTokens: before.countTokens() });
  first.close(499);
  const second = open();
  second.resumes(large, pricesOf({ promptTokens: 0, targets }, table));
  const after = follow(second);
  after.attempts(resumedJob(after, () => offerOf("attic")));
  after.on({ kind: "accepted", state: "running", resumed: resumed(40) });
  after.on({ kind: "usage", usage: { promptTokens: 10, cachedTokens: 9_999, completionTokens: 90 } });
  second.endedIn("ok");
  second.close(200);
  await clock.advanceAwaiting(1_000);
  const costs = books.written.flatMap(({ usage }) => usage.filter(({ keyId }) => keyId !== "").map(({ cost }) => cost));
  expect(costs.filter((cost) => cost > 0)).toEqual([590, 100]);
});

test.each([
  ["before it began", true],
  ["after it began", false],
])(
  "a job that goes on without its client ends when nobody came back in time, if its client left %s",
  async (_, isEarly) => {
    vi.useFakeTimers();
    const leaving = new AbortController();
    const leave = (): void => leaving.abort(new Fault("client_closed", { message: "left" }));
    if (isEarly) leave();
    const stay = staying(leaving.signal, 1_000);
    if (!isEarly) leave();
    vi.advanceTimersByTime(999);
    expect(stay.signal.aborted).toBe(false);
    vi.advanceTimersByTime(1);
    expect(stay.signal.aborted).toBe(true);
    vi.useRealTimers();
  },
);

test("a job that goes on without its client ends at once when its key is revoked", () => {
  const leaving = new AbortController();
  const stay = staying(leaving.signal, 1_000);
  leaving.abort(new Fault("key_invalid", { message: "revoked" }));
  expect(stay.signal.aborted).toBe(true);
});
