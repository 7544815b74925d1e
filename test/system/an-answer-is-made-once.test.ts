import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { errorOf } from "../harness/endpoint.ts";
import { contentOf } from "../harness/answer-payload.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { MetricsText } from "../harness/metrics-text.ts";
import { Operator } from "../harness/operator.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { startUp } from "../harness/start-trunkline.ts";
import { until } from "../harness/until.ts";

interface Asking {
  readonly baseUrl: string;
  readonly key: string;
  readonly name: string;
  readonly stream?: boolean;
  readonly signal?: AbortSignal;
}

function ask(says: string, { baseUrl, key, name, stream = false, signal }: Asking): Promise<Response> {
  return fetch(`${baseUrl}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", "idempotency-key": name },
    body: JSON.stringify({ model: "scripted", stream, messages: [{ role: "user", content: says }] }),
    ...(signal && { signal }),
  });
}

const wanted = (nonce: string, tokens: number): string =>
  Array.from({ length: tokens }, (_, token) => `${nonce}-${token} `).join("");

/** The jobs that a gateway waits for. */
async function openJobs(operationsUrl: string): Promise<number> {
  return (await MetricsText.scrape(operationsUrl)).value("trunkline_open_jobs") ?? 0;
}

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

  const fleetLoad = (): Promise<number> => openJobs(fleet.gateways[0]?.operationsUrl ?? "");

  const at = (gateway: number): string => fleet.endpoints[gateway]?.baseUrl ?? "";

  /** A key of its own, so that its usage counts one test alone. */
  async function newKey() {
    const { token, record } = await operator.issue();
    const booked = (tokens: number) =>
      until(
        async () => {
          const sum = await operator.usageSum(record.id);
          return sum !== undefined && sum.completionTokens >= tokens && sum;
        },
        { what: `${tokens} tokens to be booked` },
      );
    return { key: token.reveal(), booked };
  }

  test.each([false, true])(
    "an answer with an Idempotency-Key is joined at another gateway by a repeat whose connection was lost (stream: %s)",
    async (stream) => {
      const { key, booked } = await newKey();
      const says = "/script tokens=60 delay_ms=20 nonce=a";
      const leaving = new AbortController();
      const first = ask(says, { baseUrl: at(0), key, name: "a", stream, signal: leaving.signal });
      await until(async () => (await fleetLoad()) > 0, { what: "the machine to have the request" });
      leaving.abort();
      await first.then((answer) => answer.text()).catch(() => undefined);
      const answer = await ask(says, { baseUrl: at(1), key, name: "a", stream });
      expect([answer.status, answer.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
      const text = stream
        ? [...(await answer.text()).matchAll(/"content":"(a-\d+ )"/g)].map(([, piece]) => piece).join("")
        : await contentOf(answer);
      expect(text).toBe(wanted("a", 60));
      expect(await booked(60)).toMatchObject({ requests: 1, completionTokens: 60 });
    },
  );

  test.each([false, true])(
    "an answer with an Idempotency-Key is waited for by repeats while its first client is there, and they get it whole and count as one (stream: %s)",
    async (stream) => {
      const { key, booked } = await newKey();
      const asking = { key, name: "w", stream };
      const says = "/script tokens=40 delay_ms=20 nonce=w";
      const leaving = new AbortController();
      const first = ask(says, { baseUrl: at(0), ...asking });
      await until(async () => (await fleetLoad()) > 0, { what: "the machine to have the request" });
      const left = ask(says, { baseUrl: at(1), ...asking, signal: leaving.signal });
      const repeats = [0, 1, 1].map((gateway) => ask(says, { baseUrl: at(gateway), ...asking }));
      const answers = await Promise.all([first, ...repeats].map(async (each) => answered(await each, "w")));
      leaving.abort();
      await left.then((answer) => answer.text()).catch(() => undefined);
      expect(answers).toEqual([null, "true", "true", "true"].map((replayed) => [replayed, wanted("w", 40)]));
      expect(await booked(40)).toMatchObject({ requests: 1, failed: 0, completionTokens: 40 });
    },
  );

  test("an answer with an Idempotency-Key that is complete is given again, and nothing is made or counted anew", async () => {
    const { key, booked } = await newKey();
    const says = "/script tokens=8 nonce=b";
    const texts: unknown[] = [];
    for (const gateway of [0, 1, 0, 1]) {
      const answer = await ask(says, { baseUrl: at(gateway), key, name: "b" });
      texts.push([answer.headers.get("idempotent-replayed"), await contentOf(answer)]);
    }
    const text = wanted("b", 8);
    expect(texts).toEqual([
      [null, text],
      ["true", text],
      ["true", text],
      ["true", text],
    ]);
    expect(await booked(8)).toMatchObject({ requests: 1, failed: 0, completionTokens: 8 });
  });

  test.each([false, true])(
    "an answer with an Idempotency-Key that its machine has lost is made anew once, and given again from then on (stream: %s)",
    async (stream) => {
      const { key, booked } = await newKey();
      const answerAt = async (gateway: number): Promise<string | null> => {
        const answer = await ask("/script tokens=8 nonce=l", { baseUrl: at(gateway), key, name: "l", stream });
        expect(await answer.text()).toContain("l-7 ");
        return answer.headers.get("idempotent-replayed");
      };
      await answerAt(0);
      await fleet.agent("attic").kill();
      await fleet.startAgent("attic");
      expect([await answerAt(0), await answerAt(1)]).toEqual([null, "true"]);
      expect(await booked(16)).toMatchObject({ requests: 2, failed: 0, completionTokens: 16 });
    },
  );

  test("an answer with an Idempotency-Key is made anew after it failed, and for another key", async () => {
    const { key } = await newKey();
    const failing = "/script tokens=5 fail_at=0";
    for (const gateway of [0, 1]) {
      const answer = await ask(failing, { baseUrl: at(gateway), key, name: "c" });
      expect([answer.status, answer.headers.get("idempotent-replayed")]).toEqual([502, null]);
    }
    const says = "/script tokens=3 nonce=c";
    for (const each of [key, (await newKey()).key]) {
      const answer = await ask(says, { baseUrl: at(0), key: each, name: "d" });
      expect([answer.headers.get("idempotent-replayed"), await contentOf(answer)]).toEqual([null, wanted("c", 3)]);
    }
  });

  test("an answer with an Idempotency-Key is refused under the name of another one, and its client is told not to repeat it", async () => {
    const { key } = await newKey();
    await ask("/script tokens=2", { baseUrl: at(0), key, name: "e" });
    const answer = await ask("/script tokens=3", { baseUrl: at(1), key, name: "e" });
    expect([answer.status, answer.headers.get("x-should-retry")]).toEqual([409, "false"]);
    expect(await errorOf(answer)).toMatchObject({ code: "idempotency_key_reused", param: "Idempotency-Key" });
    const long = await ask("/script tokens=3", { baseUrl: at(1), key, name: "x".repeat(256) });
    expect(await errorOf(long)).toMatchObject({ code: "invalid_value", param: "Idempotency-Key" });
  });
});

test("an up makes an answer once, and tells a repeat's stream in time that it waits for the first one", async () => {
  await using up = await startUp({ TRUNKLINE_TIME_SCALE: "0.2" });
  const { baseUrl, key } = up.endpoint;
  const says = "/script tokens=4 first_ms=2000 nonce=u";
  const asking = { baseUrl, key, name: "u", stream: true };
  const first = ask(says, asking);
  await until(async () => (await openJobs(up.operationsUrl)) > 0, { what: "the machine to have the request" });
  const repeat = await ask(says, asking);
  expect(await openJobs(up.operationsUrl)).toBe(1);
  const waited = repeat.clone().text();
  expect(await answered(await first, "u")).toEqual([null, wanted("u", 4)]);
  expect(await waited).toMatch(/^: waiting for the request/);
  expect(await answered(repeat, "u")).toEqual(["true", wanted("u", 4)]);
});
