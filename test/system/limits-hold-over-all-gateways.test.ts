import { afterAll, beforeAll, expect, test } from "vitest";
import type { KeyLimits } from "#shared/records/key-record.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import { errorOf, type ChatFields, type Endpoint, type ErrorTold } from "../harness/endpoint.ts";
import { startTwoGateways, type TwoGateways } from "../harness/two-gateways.ts";

let site: TwoGateways;
beforeAll(async () => void (site = await startTwoGateways()));
afterAll(() => site[Symbol.asyncDispose]());

/** So that every answer says how its key stands, also for limits of which headers say nothing. */
const ample = { requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000_000 };
const short: ChatFields = { model: "scripted", says: "/script tokens=1", max_tokens: 1 };
const of = (tokens: number): ChatFields => ({ ...short, says: `/script tokens=${tokens}`, max_tokens: tokens });
/** Goes on until its client leaves. */
const long: ChatFields = { model: "scripted", says: "/script tokens=100000 delay_ms=20", stream: true };
const atOnce = 50;

/** From then on all gateways know what was used, and not only what may have been. */
const untilWritten = (id: KeyId, count: number) => site.operator.booked(id, ({ requests }) => requests === count);

interface Refused {
  readonly response: Response;
  readonly error: ErrorTold;
}

/** Sends so many chats at once, half of them to each gateway, and ends those that run when all have their answer. */
async function sendAtOnce(
  [here, there]: readonly [Endpoint, Endpoint],
  fields: ChatFields,
): Promise<{ ran: number; refused: Refused[] }> {
  const leaving = new AbortController();
  const sent = Array.from({ length: atOnce }, (_, at) => (at % 2 === 0 ? here : there).chat(fields, leaving.signal));
  const answers = await Promise.all(sent);
  const refused = answers.filter(({ status }) => status !== 200);
  const told = refused.map(async (response) => ({ response, error: await errorOf(response) }));
  const result = { ran: answers.length - refused.length, refused: await Promise.all(told) };
  leaving.abort();
  return result;
}

/** An official client does what these headers say. */
function expectRetryLater({ response }: Refused): void {
  const seconds = Number(response.headers.get("retry-after"));
  expect(seconds).toBeGreaterThanOrEqual(1);
  expect(seconds).toBeLessThanOrEqual(60);
  expect(response.headers.get("x-should-retry")).not.toBe("false");
}

/** A key's limits, how it is used before, what is sent at last, and what all are told but one. */
const lastUnits: [string, KeyLimits, ChatFields[], ChatFields, type: string, code: string][] = [
  ["request of a minute", { requestsPerMinute: 3 }, [short, short], short, "requests", "rate_limit_exceeded"],
  ["tokens of a minute", { tokensPerMinute: 1_000 }, [of(400)], of(500), "tokens", "rate_limit_exceeded"],
  ["seat", { concurrency: 1 }, [short, short], long, "requests", "concurrency_limit_exceeded"],
  [
    "tokens of a budget, while a request may yet use them",
    { budget: { tokens: 1_000, per: "month" } },
    [of(400)],
    long,
    "tokens",
    "rate_limit_exceeded",
  ],
];

test.each(lastUnits)(
  "50 requests at once over two gateways for the last %s: one runs, and the others are told why not",
  async (_what, one, before, last, type, code) => {
    const limits = { ...ample, ...one };
    const { endpoints, record } = await site.issue({ limits });
    for (const fields of before) await endpoints[0].answer(fields);
    await untilWritten(record.id, before.length);
    const { ran, refused } = await sendAtOnce(endpoints, last);
    expect(ran).toBe(1);
    expect(refused).toHaveLength(atOnce - 1);
    for (const each of refused) {
      expect(each.response.status).toBe(429);
      expect(each.error).toMatchObject({ type, code });
      expectRetryLater(each);
      expectStanding(each.response, limits);
    }
  },
);

test("50 requests at once over two gateways for a budget that is used up: none runs, and clients are told not to try again", async () => {
  const { endpoints, record } = await site.issue({ limits: { ...ample, budget: { tokens: 100, per: "month" } } });
  await endpoints[0].answer(of(200));
  await untilWritten(record.id, 1);
  const { ran, refused } = await sendAtOnce(endpoints, short);
  expect(ran).toBe(0);
  for (const { response, error } of refused) {
    expect(response.status).toBe(429);
    expect(error).toMatchObject({ type: "insufficient_quota", code: "insufficient_quota" });
    expect(response.headers.get("x-should-retry")).toBe("false");
  }
});

test("a key has the room at one gateway that it does not use at the other, and not one more", async () => {
  const { endpoints } = await site.issue({ limits: { concurrency: 60 } });
  const leaving = new AbortController();
  const open = (endpoint: Endpoint): Promise<Response> => endpoint.chat(long, leaving.signal);
  const answers: Response[] = [];
  for (let times = 0; times < 20; times += 1) answers.push(await open(endpoints[0]));
  answers.push(...(await Promise.all(Array.from({ length: 50 }, () => open(endpoints[1])))));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(60);
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(10);
  leaving.abort();
});

test.each([
  ["at one gateway", [0, 0]],
  ["at two gateways in turn", [0, 1]],
] as const)(
  "a client that asks again as soon as it has its answer is never refused its only seat, %s",
  async (_where, turns) => {
    const { endpoints } = await site.issue({ limits: { concurrency: 1 } });
    for (let times = 0; times < 20; times += 1) {
      const fields = { ...short, stream: times % 4 > 1 };
      const response = await endpoints[turns[times % 2 === 0 ? 0 : 1]].chat(fields);
      expect([times, response.status]).toEqual([times, 200]);
      await response.text();
    }
  },
);

function expectStanding({ headers }: Response, limits: KeyLimits): void {
  for (const [what, limit] of [
    ["requests", limits.requestsPerMinute],
    ["tokens", limits.tokensPerMinute],
  ] as const) {
    expect(headers.get(`x-ratelimit-limit-${what}`)).toBe(String(limit));
    expect(headers.get(`x-ratelimit-remaining-${what}`)).toMatch(/^\d+$/);
    expect(headers.get(`x-ratelimit-reset-${what}`)).toMatch(/^(?:\d+ms|(?:\d+m)?\d+s)$/);
  }
}
