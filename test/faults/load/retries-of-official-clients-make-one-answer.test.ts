import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { lentOnly } from "../../harness/found-servers.ts";
import { BalancedFleet } from "../../harness/load/balanced-fleet.ts";
import { Operator } from "../../harness/operator.ts";
import { SeededRandom } from "../../harness/seeded-random.ts";
import { until } from "../../harness/until.ts";
import { sized, testTimeoutMs } from "./lane.ts";

const count = sized({ fast: 40, whole: 1_000 });
const atOnce = 20;
const tokens = 30;

describe.skipIf(lentOnly("nats", "redis"))("OpenAI's client with an idempotency key, whose connections are cut", () => {
  test(
    `gets ${count} answers by its own retries over three gateways, each made and counted once`,
    async () => {
      await using fleet = await BalancedFleet.start({ gateways: 3, machines: { attic: ["scripted"] } });
      await using operator = await Operator.on({ redisUrl: fleet.redis.url });
      const { token, record } = await operator.issue();
      const random = new SeededRandom(1);
      let cut = 0;
      const seen = new Set<string>();
      /** Sends each attempt to any gateway, and cuts the first one of each answer after a moment. */
      const cutting: typeof fetch = async (input, init) => {
        const gateway = fleet.gateways[random.between(0, 2)]?.baseUrl ?? "";
        const path = new URL(input instanceof Request ? input.url : input).pathname.replace(/^\/v1/, "");
        const name = new Headers(init?.headers).get("idempotency-key") ?? "";
        const isFirst = !seen.has(name);
        seen.add(name);
        const leaving = new AbortController();
        if (isFirst) setTimeout(() => leaving.abort(), random.between(20, 250));
        const signal = isFirst ? leaving.signal : (init?.signal ?? null);
        try {
          return await fetch(`${gateway}${path}`, { ...init, signal });
        } catch {
          cut += 1;
          throw new TypeError("the connection was cut");
        }
      };
      const client = new OpenAI({
        apiKey: token.reveal(),
        baseURL: fleet.balancer.baseUrl,
        fetch: cutting,
        maxRetries: 5,
      });
      let next = 0;
      const wrong: string[] = [];
      const ask = async (): Promise<void> => {
        while (next < count) {
          const number = (next += 1);
          const messages = [
            { role: "user" as const, content: `/script tokens=${tokens} delay_ms=10 nonce=r${number}` },
          ];
          const answer = await client.chat.completions.create(
            { model: "scripted", messages },
            { headers: { "idempotency-key": `answer-${number}` } },
          );
          const wanted = Array.from({ length: tokens }, (_, each) => `r${number}-${each} `).join("");
          if (answer.choices[0]?.message.content !== wanted) wrong.push(JSON.stringify(answer));
        }
      };
      await Promise.all(Array.from({ length: atOnce }, ask));
      const booked = await until(
        async () => {
          const sum = await operator.usageSum(record.id);
          return sum !== undefined && sum.completionTokens >= count * tokens && sum;
        },
        { what: "all answers to be booked" },
      );
      console.log(`${cut} connections were cut under ${count} answers`);
      expect(wrong).toEqual([]);
      expect(cut).toBeGreaterThan(count / 2);
      // A request that was cut before any machine had it has failed, and made nothing.
      expect([booked.requests - booked.failed, booked.completionTokens]).toEqual([count, count * tokens]);
    },
    testTimeoutMs,
  );
});
