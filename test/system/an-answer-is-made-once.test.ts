import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Endpoint, errorOf, refusalOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { MetricsText } from "../harness/metrics-text.ts";
import { Operator } from "../harness/operator.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { startUp } from "../harness/start-trunkline.ts";
import { until } from "../harness/until.ts";

interface Asking {
  readonly name: string;
  readonly stream?: boolean;
  readonly signal?: AbortSignal;
}

function ask(endpoint: Endpoint, says: string, { name, stream = false, signal }: Asking): Promise<Response> {
  const fields = { model: "scripted", stream, messages: [{ role: "user", content: says }] };
  return endpoint.post("/chat/completions", fields, { headers: { "idempotency-key": name }, signal });
}

const wanted = (nonce: string, tokens: number): string =>
  Array.from({ length: tokens }, (_, token) => `${nonce}-${token} `).join("");

/** The jobs that a gateway waits for. */
async function openJobs(operationsUrl: string): Promise<number> {
  return (await MetricsText.scrape(operationsUrl)).value("trunkline_open_jobs") ?? 0;
}

const untilBegun = (operationsUrl: string): Promise<boolean> =>
  until(async () => (await openJobs(operationsUrl)) > 0, { what: "the machine to have the request" });

/** Returns the answer as its client sees it: its mark of an earlier request, and its text. */
async function answered(answer: Response, nonce: string): Promise<[string | null, string]> {
  const text = [...(await answer.text()).matchAll(new RegExp(`${nonce}-\\d+ `, "g"))].join("");
  return [answer.headers.get("idempotent-replayed"), text];
}

describe.skipIf(lentOnly("nats", "redis"))("an answer with an Idempotency-Key", () => {
  let fleet: Fleet;
  let operator: Operator;
  beforeAll(async () => {
    fleet = await startFleet({ gateways: 2, machines: { attic: { models: ["scripted"] } } });
    operator = await Operator.on({ redisUrl: fleet.redis.url });
  });
  afterAll(async () => {
    await operator[Symbol.asyncDispose]();
    await fleet[Symbol.asyncDispose]();
  });

  /** Both gateways for a key of its own, so that its usage counts one test alone. */
  async function newKey() {
    const { token, record } = await operator.issue();
    const [one, other] = fleet.endpoints.map((endpoint) => endpoint.withKey(token.reveal()));
    if (one === undefined || other === undefined) throw new Error("there are two gateways");
    const booked = (tokens: number) => operator.booked(record.id, ({ completionTokens }) => completionTokens >= tokens);
    return { one, other, booked };
  }

  test.each([false, true])(
    "an answer with an Idempotency-Key is joined at another gateway by a repeat whose connection was lost (stream: %s)",
    async (stream) => {
      const { one, other, booked } = await newKey();
      const says = "/script tokens=60 delay_ms=20 nonce=a";
      const leaving = new AbortController();
      const first = ask(one, says, { name: "a", stream, signal: leaving.signal });
      await untilBegun(fleet.gateway.operationsUrl);
      leaving.abort();
      await first.then((answer) => answer.text()).catch(() => undefined);
      expect(await answered(await ask(other, says, { name: "a", stream }), "a")).toEqual(["true", wanted("a", 60)]);
      expect(await booked(60)).toMatchObject({ requests: 1, completionTokens: 60 });
    },
  );

  test.each([false, true])(
    "an answer with an Idempotency-Key is waited for by repeats while its first client is there, and they get it whole and count as one (stream: %s)",
    async (stream) => {
      const { one, other, booked } = await newKey();
      const asking = { name: "w", stream };
      const says = "/script tokens=40 delay_ms=20 nonce=w";
      const leaving = new AbortController();
      const first = ask(one, says, asking);
      await untilBegun(fleet.gateway.operationsUrl);
      const left = ask(other, says, { ...asking, signal: leaving.signal });
      const repeats = [one, other, other].map((endpoint) => ask(endpoint, says, asking));
      const answers = await Promise.all([first, ...repeats].map(async (each) => answered(await each, "w")));
      leaving.abort();
      await left.then((answer) => answer.text()).catch(() => undefined);
      expect(answers).toEqual([null, "true", "true", "true"].map((replayed) => [replayed, wanted("w", 40)]));
      expect(await booked(40)).toMatchObject({ requests: 1, failed: 0, completionTokens: 40 });
    },
  );

  test("an answer with an Idempotency-Key that is complete is given again, and nothing is made or counted anew", async () => {
    const { one, other, booked } = await newKey();
    const answers: unknown[] = [];
    for (const endpoint of [one, other, one, other]) {
      answers.push(await answered(await ask(endpoint, "/script tokens=8 nonce=b", { name: "b" }), "b"));
    }
    expect(answers).toEqual([null, "true", "true", "true"].map((replayed) => [replayed, wanted("b", 8)]));
    expect(await booked(8)).toMatchObject({ requests: 1, failed: 0, completionTokens: 8 });
  });

  test.each([false, true])(
    "an answer with an Idempotency-Key that its machine has lost is made anew once, and given again from then on (stream: %s)",
    async (stream) => {
      const { one, other, booked } = await newKey();
      const answerAt = async (endpoint: Endpoint) =>
        answered(await ask(endpoint, "/script tokens=8 nonce=l", { name: "l", stream }), "l");
      await answerAt(one);
      await fleet.agent("attic").kill();
      await fleet.startAgent("attic");
      expect(await answerAt(one)).toEqual([null, wanted("l", 8)]);
      expect(await answerAt(other)).toEqual(["true", wanted("l", 8)]);
      expect(await booked(16)).toMatchObject({ requests: 2, failed: 0, completionTokens: 16 });
    },
  );

  test("an answer with an Idempotency-Key is made anew after it failed, and for another key", async () => {
    const { one, other } = await newKey();
    for (const endpoint of [one, other]) {
      const answer = await ask(endpoint, "/script tokens=5 fail_at=0", { name: "c" });
      expect([answer.status, answer.headers.get("idempotent-replayed")]).toEqual([502, null]);
    }
    for (const endpoint of [one, (await newKey()).one]) {
      const answer = await ask(endpoint, "/script tokens=3 nonce=c", { name: "d" });
      expect(await answered(answer, "c")).toEqual([null, wanted("c", 3)]);
    }
  });

  test("an answer with an Idempotency-Key is refused under the name of another one, and its client is told not to repeat it", async () => {
    const { one, other } = await newKey();
    await ask(one, "/script tokens=2", { name: "e" });
    const answer = await ask(other, "/script tokens=3", { name: "e" });
    expect([answer.status, answer.headers.get("x-should-retry")]).toEqual([409, "false"]);
    expect(await errorOf(answer)).toMatchObject({ code: "idempotency_key_reused", param: "Idempotency-Key" });
    const long = ask(other, "/script tokens=3", { name: "x".repeat(256) });
    expect(await refusalOf(long)).toMatchObject({ code: "invalid_value", param: "Idempotency-Key" });
  });
});

test("an up makes an answer once, and tells a repeat's stream in time that it waits for the first one", async () => {
  await using up = await startUp({ TRUNKLINE_TIME_SCALE: "0.2" });
  const says = "/script tokens=4 first_ms=2000 nonce=u";
  const first = ask(up.endpoint, says, { name: "u", stream: true });
  await untilBegun(up.operationsUrl);
  const repeat = await ask(up.endpoint, says, { name: "u", stream: true });
  expect(await openJobs(up.operationsUrl)).toBe(1);
  const waited = repeat.clone().text();
  expect(await answered(await first, "u")).toEqual([null, wanted("u", 4)]);
  expect(await waited).toMatch(/^: waiting for the request/);
  expect(await answered(repeat, "u")).toEqual(["true", wanted("u", 4)]);
});
