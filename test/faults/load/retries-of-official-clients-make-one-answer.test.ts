import { Agent } from "node:http";
import { setTimeout as pass } from "node:timers/promises";
import OpenAI from "openai";
import { openRequests } from "#shared/requests/request-records.ts";
import { expect, test } from "vitest";
import { lentOnly } from "../../harness/found-servers.ts";
import { askOverHttp, type Asked } from "../../harness/load/ask-over-http.ts";
import { BalancedFleet } from "../../harness/load/balanced-fleet.ts";
import { JobsByChat } from "../../harness/load/jobs-by-chat.ts";
import { type ScriptedChat, scriptedChat } from "../../harness/load/scripted-chat.ts";
import { Operator } from "../../harness/operator.ts";
import { SeededRandom } from "../../harness/seeded-random.ts";
import { sized, testTimeoutMs } from "./lane.ts";

const count = sized({ fast: 40, whole: 1_000 });
const atOnce = 20;
const tokens = 30;

test.skipIf(lentOnly("nats", "redis"))(
  `OpenAI's client with an idempotency key, whose connections are cut, gets ${count} answers by its own retries over three gateways, each made and counted once`,
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
    const { key: apiKey, baseUrl: baseURL } = fleet.endpoint.withKey(token.reveal());
    const client = new OpenAI({ apiKey, baseURL, fetch: cutting, maxRetries: 5 });
    let next = 0;
    const wrong: string[] = [];
    const ask = async (): Promise<void> => {
      while (next < count) {
        const number = (next += 1);
        const content = `/script tokens=${tokens} delay_ms=10 nonce=r${number}`;
        const messages = [{ role: "user" as const, content }];
        const answer = await client.chat.completions.create(
          { model: "scripted", messages },
          { headers: { "idempotency-key": `answer-${number}` } },
        );
        const wanted = Array.from({ length: tokens }, (_, each) => `r${number}-${each} `).join("");
        if (answer.choices[0]?.message.content !== wanted) wrong.push(JSON.stringify(answer));
      }
    };
    await Promise.all(Array.from({ length: atOnce }, ask));
    const booked = await operator.booked(record.id, (sum) => sum.completionTokens >= count * tokens);
    console.log(`${cut} connections were cut under ${count} answers`);
    expect(wrong).toEqual([]);
    expect(cut).toBeGreaterThan(count / 2);
    // A request that was cut before any machine had it has failed, and made nothing.
    expect([booked.requests - booked.failed, booked.completionTokens]).toEqual([count, count * tokens]);
  },
  testTimeoutMs,
);

const names = sized({ fast: 12, whole: 200 });
const kills = sized({ fast: 1, whole: 12 });
const clientsPerName = 3;
const namesAtOnce = 10;
/** A client that never gets its answer gives up after so many attempts. */
const attemptsMax = 60;
const again: ReadonlySet<Asked["outcome"]> = new Set(["broken off", "refused", "cut short and told"]);

test.skipIf(lentOnly("nats", "redis"))(
  `three clients at once with one idempotency key get each of ${names} answers whole: made once, never by two machines at once, anew only after a machine was killed`,
  async () => {
    const machines = { attic: ["scripted"], cellar: ["scripted"], spare: ["scripted"] };
    await using fleet = await BalancedFleet.start({ gateways: 2, machines });
    await using operator = await Operator.on({ redisUrl: fleet.redis.url });
    await using jobs = await JobsByChat.watch(fleet.nats.url);
    const agent = new Agent({ keepAlive: true });
    const random = new SeededRandom(2);
    const key = async () => {
      const { token, record } = await operator.issue();
      return { token: token.reveal(), id: record.id };
    };
    /** Asks until the answer is whole. Each attempt goes to any gateway, and breaks off after `staysMs`. */
    const untilWhole = async (chat: ScriptedChat, token: string, staysMs: () => number): Promise<Asked[]> => {
      const attempts: Asked[] = [];
      do {
        const { baseUrl } = fleet.gateways[random.between(0, 1)] ?? fleet.balancer;
        const headers = { "idempotency-key": chat.nonce };
        const signal = AbortSignal.timeout(staysMs());
        attempts.push(await askOverHttp(chat, { baseUrl, key: token, agent, headers, signal }));
        if (attempts.at(-1)?.outcome !== "exact") await pass(50);
      } while (again.has(attempts.at(-1)?.outcome ?? "exact") && attempts.length < attemptsMax);
      return attempts;
    };
    const askAll = async (token: string, staysMs: () => number) => {
      const asked: { chat: ScriptedChat; attempts: Asked[] }[] = [];
      let left = names;
      const inTurn = async (): Promise<void> => {
        while (left > 0) {
          left -= 1;
          const chat = scriptedChat({ tokens, delayMs: 15, streamed: left % 2 === 0 });
          const clients = Array.from({ length: clientsPerName }, () => untilWhole(chat, token, staysMs));
          for (const attempts of await Promise.all(clients)) asked.push({ chat, attempts });
        }
      };
      await Promise.all(Array.from({ length: namesAtOnce }, inTurn));
      return asked;
    };
    const outcomes = (asked: readonly { attempts: Asked[] }[]): Asked["outcome"][] =>
      asked.map(({ attempts }) => attempts.at(-1)?.outcome ?? "broken off");

    const calm = await key();
    const atRest = await askAll(calm.token, () => 60_000);
    expect(new Set(outcomes(atRest))).toEqual(new Set(["exact"]));
    expect(atRest.filter(({ attempts }) => attempts.length > 1)).toEqual([]);
    expect(jobs.remade.again).toEqual([]);
    const all = { requests: names, failed: 0, completionTokens: names * tokens };
    expect(await operator.booked(calm.id, ({ requests }) => requests >= names)).toMatchObject(all);

    const shaken = await key();
    const over = new AbortController();
    const killing = (async () => {
      for (let kill = 0; kill < kills && !over.signal.aborted; kill += 1) {
        const machine = kill % 2 === 0 ? "attic" : "cellar";
        await pass(random.between(200, 900));
        await fleet.agent(machine).kill();
        await fleet.startAgent(machine);
      }
    })();
    const asked = await askAll(shaken.token, () => (random.between(0, 1) === 0 ? 60_000 : random.between(20, 700)));
    over.abort();
    await killing;
    agent.destroy();
    expect(new Set(outcomes(asked))).toEqual(new Set(["exact"]));
    const { again: remade, atOnce: twiceAtOnce } = jobs.remade;
    const sum = await operator.booked(shaken.id, ({ requests }) => requests >= names);
    const { found } = await openRequests(operator.store.state).find({ keyIds: [shaken.id] }, { limit: 10_000 });
    const explained = found.filter(({ record }) => record.anewAfter !== undefined || record.tried.length > 1);
    console.log(
      `${names} names, ${kills} kills: ${remade.length} made again, ${twiceAtOnce.length} by two machines at once; ${explained.length} records say why; ${sum.requests} requests, ${sum.failed} failed`,
    );
    expect(twiceAtOnce).toEqual([]);
    expect(explained.length).toBeGreaterThanOrEqual(remade.length);
  },
  testTimeoutMs,
);
