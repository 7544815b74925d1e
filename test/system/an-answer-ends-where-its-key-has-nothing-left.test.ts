import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { KeyId } from "#shared/keys/key-token.ts";
import { setPrice } from "../harness/set-records.ts";
import type { OpenedKeyStore } from "#shared/store/open-key-store.ts";
import type { KeyLimits } from "#shared/records/key-record.ts";
import type { Endpoint } from "../harness/endpoint.ts";
import { startGatewayInProcess } from "../harness/gateway-in-process.ts";
import { Operator } from "../harness/operator.ts";
import { until } from "../harness/until.ts";
import { startTwoGateways } from "../harness/two-gateways.ts";

/** A site under test: new keys with an endpoint at each gateway, and the tokens that are booked for a key. */
interface Site extends AsyncDisposable {
  issue(limits?: KeyLimits): Promise<{ endpoints: readonly Endpoint[]; booked: (requests: number) => Promise<number> }>;
  readonly store: OpenedKeyStore;
}

const sites: Record<string, () => Promise<Site>> = {
  "two gateways in Redis": async () => {
    const site = await startTwoGateways();
    return {
      issue: async (limits) => {
        const { endpoints, record } = await site.issue({ limits });
        return { endpoints, booked: (requests) => bookedOf(site.operator, record.id, requests) };
      },
      store: site.gateways[0].store,
      [Symbol.asyncDispose]: () => site[Symbol.asyncDispose](),
    };
  },
  "one gateway in SQLite": async () => {
    const gateway = await startGatewayInProcess();
    return {
      issue: async (limits) => {
        const { endpoint, record } = await gateway.issue({ limits });
        const operator = Operator.beside(gateway.store);
        return { endpoints: [endpoint], booked: (requests) => bookedOf(operator, record.id, requests) };
      },
      store: gateway.store,
      [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
    };
  },
};

async function bookedOf(operator: Operator, id: KeyId, requests: number): Promise<number> {
  const row = await operator.booked(id, (sum) => sum.requests === requests);
  return row.promptTokens + row.completionTokens;
}

/** Tokens that an answer may have beyond what its key had left, as the documents say. */
const overshootMax = 2_000;

/** The words of a scripted answer have three tokens each. */
const long = "/script tokens=50000";
const messages = [{ role: "user" as const, content: long }];
const clientOf = ({ baseUrl, key }: Endpoint): OpenAI => new OpenAI({ baseURL: baseUrl, apiKey: key, maxRetries: 0 });

describe.each(Object.keys(sites))("%s", (name) => {
  let site: Site;
  beforeAll(async () => void (site = await (sites[name] as () => Promise<Site>)()));
  afterAll(() => site[Symbol.asyncDispose]());

  test("ten answers at once without max_tokens use a budget of 10,000 tokens to its end and no further", async () => {
    const { endpoints, booked } = await site.issue({ budget: { tokens: 10_000, per: "day" } });
    const asked = Array.from({ length: 10 }, async (_, at) => {
      const client = clientOf(endpoints[at % endpoints.length] as Endpoint);
      if (at % 4 < 2) {
        const { data, response } = await client.chat.completions.create({ model: "scripted", messages }).withResponse();
        expect(response.headers.get("x-trunkline-limit")).toBe("budget");
        const { completion_tokens: tokens = 0 } = data.usage ?? {};
        expect(data.choices[0]?.message.content?.length).toBeGreaterThan(tokens);
        return data.choices[0]?.finish_reason;
      }
      const stream = await client.chat.completions.create({ model: "scripted", messages, stream: true });
      let finish: string | null | undefined;
      for await (const { choices } of stream) finish = choices[0]?.finish_reason ?? finish;
      return finish;
    });
    const outcomes = await Promise.allSettled(asked);
    const ended = outcomes.filter(({ status }) => status === "fulfilled");
    expect(ended.length).toBeGreaterThanOrEqual(9);
    for (const each of outcomes) {
      if (each.status === "fulfilled") expect(each.value).toBe("length");
      else expect(each.reason).toMatchObject({ status: 429 });
    }
    const tokens = await booked(10);
    expect(tokens).toBeGreaterThanOrEqual(9_900);
    expect(tokens).toBeLessThanOrEqual(10_000 + 10 * overshootMax);
  });

  test("32 streams at once spend a limit in money to its end, and the next request is told the day on which it begins anew", async () => {
    // A token of an answer costs 0.001, so that the limit is 10,000 of them.
    await setPrice("scripted", { output: 1_000_000_000 }, { ...site.store, actor: { by: "the operator" } });
    const { endpoints } = await site.issue({ spend: { millionths: 10_000_000, per: "month" } });
    const hasPrice = async (endpoint: Endpoint) => {
      const { headers } = await endpoint.chat({ model: "scripted", says: "/script tokens=1" });
      return headers.has("x-trunkline-cost");
    };
    for (const each of endpoints) await until(() => hasPrice(each), { what: "the price at each gateway" });
    const streams = Array.from({ length: 32 }, async (_, at) => {
      const client = clientOf(endpoints[at % endpoints.length] as Endpoint);
      const options = { include_usage: true };
      const body = { model: "scripted", messages, stream: true, stream_options: options } as const;
      let [finish, tokens]: [string | null | undefined, number] = [undefined, 0];
      for await (const { choices, usage } of await client.chat.completions.create(body)) {
        finish = choices[0]?.finish_reason ?? finish;
        tokens = usage?.completion_tokens ?? tokens;
      }
      return { finish, tokens };
    });
    const ended = (await Promise.allSettled(streams)).flatMap((each) => {
      if (each.status === "rejected") expect(each.reason).toMatchObject({ status: 429 });
      return each.status === "fulfilled" ? [each.value] : [];
    });
    for (const each of ended) expect(each.finish).toBe("length");
    const tokens = ended.reduce((sum, each) => sum + each.tokens, 0);
    expect(tokens).toBeGreaterThanOrEqual(9_900);
    expect(tokens).toBeLessThanOrEqual(10_000 + ended.length * overshootMax);
    const refused = await (endpoints[0] as Endpoint).chat({ model: "scripted", says: "/script tokens=1" });
    expect([refused.status, await refused.text()]).toEqual([
      429,
      expect.stringMatching(
        /This key has used 1\d\.\d+ of 10\.00 units this month; it begins anew on 1 \w+, 00:00 UTC\./,
      ),
    ]);
  });

  test("one answer at 1,000 tokens a minute ends there, and a shorter one runs whole", async () => {
    const { endpoints, booked } = await site.issue({ tokensPerMinute: 1_000 });
    const client = clientOf(endpoints[0] as Endpoint);
    const { data, response } = await client.chat.completions.create({ model: "scripted", messages }).withResponse();
    expect(data.choices[0]?.finish_reason).toBe("length");
    expect(response.headers.get("x-trunkline-limit")).toBe("tokens");
    expect(data.usage?.total_tokens).toBeLessThanOrEqual(1_000 + overshootMax);
    expect(await booked(1)).toBe(data.usage?.total_tokens);

    const ample = clientOf((await site.issue({ tokensPerMinute: 1_000_000 })).endpoints[0] as Endpoint);
    const content = "/script tokens=5000";
    const whole = await ample.chat.completions.create({ model: "scripted", messages: [{ role: "user", content }] });
    expect(whole.choices[0]?.finish_reason).toBe("stop");
    expect(whole.usage?.completion_tokens).toBe(5_000);
  });

  test("each API says in its own words that an answer ended early, and names the limit in the headers or a comment", async () => {
    const cut = async (path: string, body: object): Promise<string> => {
      const { endpoints } = await site.issue({ budget: { tokens: 1_200, per: "month" } });
      const response = await (endpoints[0] as Endpoint).post(path, { model: "scripted", ...body });
      expect(response.status).toBe(200);
      return `x-trunkline-limit: ${response.headers.get("x-trunkline-limit")}\n${await response.text()}`;
    };
    const apis: [path: string, body: object, words: RegExp][] = [
      ["/chat/completions", { messages }, /"finish_reason":"length"/],
      ["/completions", { prompt: long, max_tokens: 50_000 }, /"finish_reason":"length"/],
      ["/responses", { input: long }, /"status":"incomplete","incomplete_details":\{"reason":"max_output_tokens"\}/],
      ["/messages", { messages, max_tokens: 50_000 }, /"stop_reason":"max_tokens"/],
    ];
    for (const [path, body, words] of apis) {
      const whole = await cut(path, body);
      expect(whole).toMatch(words);
      expect(whole).toContain("x-trunkline-limit: budget\n");
      const stream = await cut(path, { ...body, stream: true });
      expect(stream).toMatch(words);
      expect(stream).toContain("\n: x-trunkline-limit: budget\n");
    }
  });

  test("a prompt that is far longer than what is left is refused before it runs", async () => {
    const { endpoints } = await site.issue({ budget: { tokens: 500, per: "day" } });
    const asked = clientOf(endpoints[0] as Endpoint).chat.completions.create({
      model: "scripted",
      messages: [{ role: "user", content: "one two three four ".repeat(500) }],
    });
    await expect(asked).rejects.toMatchObject({
      status: 429,
      code: "insufficient_quota",
      message: expect.stringMatching(/about \d+ tokens, more than this key has left of 500 tokens a day/),
    });
  });
});
