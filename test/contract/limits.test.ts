import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { KeyLimits } from "#shared/keys/key-limits.ts";
import { systemClock } from "#shared/process/clock.ts";
import { connectRedis, type RedisConnection } from "#shared/process/redis-connection.ts";
import { newToken } from "#shared/protocol/token.ts";
import type { Endings, Telling } from "../../services/gateway/limits/endings.ts";
import { budgetPeriodAt, type Demand, type Settled } from "../../services/gateway/limits/limits.ts";
import { LocalLimits } from "../../services/gateway/limits/local-limits.ts";
import { RedisLimits } from "../../services/gateway/limits/redis-limits.ts";
import { batchName, type Batch } from "../../services/gateway/settlement/books.ts";
import { RedisBooks } from "../../services/gateway/settlement/redis-books.ts";
import { redisUrl, type SomeServer } from "../harness/lent-or-own.ts";
import { TurnableClock } from "../harness/turnable-clock.ts";
import { until } from "../harness/until.ts";
import { holdOf, limitsContract, outcomeOf } from "./limits.contract.ts";

let server: SomeServer;
beforeAll(async () => void (server = await redisUrl()));
afterAll(() => server.stop());

limitsContract("the memory of a gateway", async () => {
  const clock = new TurnableClock();
  const spent = new Map<string, number>();
  const limits = new LocalLimits({ clock, spent: (keyId, period) => spent.get(`${keyId} ${period}`) ?? 0 });
  return {
    gateways: [limits, limits],
    settle: async (settled) => limits.settle(settled),
    end: (settled) => limits.settle(settled),
    spend: async (keyId, { budget }, tokens) => {
      const name = `${keyId} ${budgetPeriodAt(budget?.per ?? "day", clock.wall()).name}`;
      spent.set(name, (spent.get(name) ?? 0) + tokens);
    },
    close: () => undefined,
  };
});

limitsContract("Redis", async () => {
  const { connections, open, write } = redisPlace();
  const one = await open();
  const other = await open();
  const endings = new EndingsOfATest();
  return {
    gateways: [limitsOn(one, endings), limitsOn(other)],
    settle: async (settled) => write(one, { settled: [settled] }),
    end: (settled) => endings.end(settled),
    spend: async (keyId, limits, tokens) => write(other, { spent: [spendingOf(keyId, limits, tokens)] }),
    close: () => connections.forEach((each) => each.close()),
  };
});

describe("limits of several gateways in Redis", () => {
  const seated: KeyLimits = { concurrency: 1, budget: { tokens: 100, per: "day" } };

  test("the seats and the budget of a gateway that was killed are free by themselves", async () => {
    const redis = await openOne();
    const limits = new RedisLimits(redis, { clock: systemClock, seatLivesMs: 50 });
    const demand = demandOf(seated);
    expect(outcomeOf(await limits.admit(demand(60)))).toBe("admitted");
    const again = await until(
      async () => {
        const admission = await limits.admit(demand(100));
        return admission.outcome === "admitted" && admission;
      },
      { what: "the seat to lapse" },
    );
    expect(again.hold.budgetTokens).toBe(100);
  });

  test("a seat that is renewed lives on, and one that had lapsed is taken again with what it had reserved", async () => {
    const redis = await openOne();
    const limits = new RedisLimits(redis, { clock: systemClock, seatLivesMs: 1 });
    const demand = demandOf({ concurrency: 2, budget: { tokens: 100, per: "day" } });
    const lapsed = holdOf(await limits.admit(demand(60)));
    const probe = await until(
      async () => {
        const admission = await limits.admit(demand(100));
        return admission.outcome === "admitted" && admission.hold.budgetTokens === 100 && admission.hold;
      },
      { what: "the seat to lapse" },
    );
    const settled = [{ hold: probe, ran: false, usedTokens: 0 }];
    await new RedisBooks(redis).write(batchOf({ renewed: [lapsed], settled }));
    await new RedisBooks(redis).write(batchOf({ renewed: [lapsed] }));
    expect(holdOf(await limitsOn(redis).admit(demand(100))).budgetTokens).toBe(40);
    expect(outcomeOf(await limitsOn(redis).admit(demand(1)))).toBe("budget_reserved");
  });

  test("of a key that is idle nothing is left behind", async () => {
    const redis = await openOne();
    const endings = new EndingsOfATest();
    const { gateway } = endings;
    const demand = demandOf({ concurrency: 1, budget: { tokens: 100, per: "day" }, requestsPerMinute: 10 });
    const first = { hold: holdOf(await limitsOn(redis).admit(demand(10))), ran: true, usedTokens: 10 };
    endings.end(first);
    const second = { ...first, hold: holdOf(await limitsOn(redis, endings).admit(demand(10))) };
    const { keyId, limits } = first.hold;
    const under = ["limits", "seats", "reservations", "unwritten"].map((what) => `${what}:${keyId}`);
    const timesToLive = () => Promise.all(under.map((name) => redis.run("look", (each) => each.pttl(name))));
    for (const ttlMs of await timesToLive()) expect(ttlMs).toBeGreaterThan(0);
    const spent = [spendingOf(keyId, limits, 20)];
    await new RedisBooks(redis).write(batchOf({ gateway, settled: [first, second], toldOf: [keyId], spent }));
    expect(await timesToLive()).toEqual([expect.any(Number), -2, -2, -2]);
    expect((await timesToLive())[0]).toBeGreaterThan(0);
    const [key] = spent.map(({ period }) => `spent:${keyId}:${period}`);
    expect(await redis.run("look", (each) => each.pttl(key ?? ""))).toBeGreaterThan(86_400_000);
  });

  test("a clock that was set back keeps nobody out for longer than before", async () => {
    const redis = await openOne();
    const demand = demandOf({ requestsPerMinute: 1_200, tokensPerMinute: 1_200 });
    const limits = limitsOn(redis);
    const { keyId } = demand();
    const inAnHour = String(Date.now() + 3_600_000);
    await redis.run("set the clock back", (each) =>
      each.hset(`limits:${keyId}`, {
        requests: "1200",
        requestsAt: inAnHour,
        tokens: "1200",
        tokensAt: inAnHour,
      }),
    );
    expect(outcomeOf(await limits.admit(demand()))).toBe("requests");
    await until(async () => (await limits.admit(demand())).outcome === "admitted", { what: "the next to be let in" });
  });

  test("a script that Redis does not know any more is sent to it again", async () => {
    const redis = await openOne();
    const demand = demandOf(seated);
    const hold = holdOf(await limitsOn(redis).admit(demand()));
    await redis.run("forget scripts", (each) => each.script("FLUSH"));
    expect(outcomeOf(await limitsOn(redis).admit(demand()))).toBe("concurrency");
    await new RedisBooks(redis).write(batchOf({ settled: [{ hold, ran: true, usedTokens: 1 }] }));
    expect(outcomeOf(await limitsOn(redis).admit(demand()))).toBe("admitted");
  });

  test("an end that comes twice in different batches frees one seat and one reservation", async () => {
    const redis = await openOne();
    const demand = demandOf({ concurrency: 2, budget: { tokens: 100, per: "day" } });
    const settled: Settled[] = [{ hold: holdOf(await limitsOn(redis).admit(demand(50))), ran: true, usedTokens: 0 }];
    await limitsOn(redis).admit(demand(50));
    for (const gateway of ["one", "two", "three"]) await new RedisBooks(redis).write(batchOf({ gateway, settled }));
    expect(holdOf(await limitsOn(redis).admit(demand(100))).budgetTokens).toBe(50);
    expect(outcomeOf(await limitsOn(redis).admit(demand(1)))).toBe("budget_reserved");
  });

  test("what has ended but is not written counts for what it used at every gateway, until it is written and once then", async () => {
    const redis = await openOne();
    const endings = new EndingsOfATest();
    const [here, there] = [limitsOn(redis, endings), limitsOn(redis)];
    const demand = demandOf({ budget: { tokens: 100, per: "day" } });
    const hold = holdOf(await here.admit(demand(100)));
    const ended: Settled = { hold, ran: true, usedTokens: 70 };
    endings.end(ended);
    const next = holdOf(await here.admit(demand(10)));
    endings.end(ended);
    expect(holdOf(await here.admit(demand(100))).budgetTokens).toBe(20);
    expect(outcomeOf(await there.admit(demand(1)))).toBe("budget_reserved");
    const spent = [spendingOf(hold.keyId, hold.limits, 70)];
    const { gateway } = endings;
    await new RedisBooks(redis).write(batchOf({ gateway, settled: [ended], toldOf: [hold.keyId], spent }));
    endings.end(ended);
    expect(outcomeOf(await here.admit(demand(1)))).toBe("budget_reserved");
    await new RedisBooks(redis).write(batchOf({ settled: [{ hold: next, ran: false, usedTokens: 0 }] }));
    expect(holdOf(await there.admit(demand(100))).budgetTokens).toBe(10);
  });
});

async function openOne(): Promise<RedisConnection> {
  const { connections, open } = redisPlace();
  onTestFinished(() => connections.forEach((each) => each.close()));
  return open();
}

function redisPlace() {
  const keyPrefix = `trunkline-test-${randomUUID()}:`;
  const connections: RedisConnection[] = [];
  return {
    connections,
    open: async () => {
      const redis = await connectRedis({ url: server.url, keyPrefix, commandTimeoutMs: 5_000 });
      connections.push(redis);
      return redis;
    },
    write: async (redis: RedisConnection, batch: Partial<Batch>) =>
      void (await new RedisBooks(redis).write(batchOf(batch))),
  };
}

function limitsOn(redis: RedisConnection, endings?: Endings): RedisLimits {
  return new RedisLimits(redis, { clock: systemClock, ...(endings && { endings }) });
}

/** Ends of requests that no batch has written yet; the first batch of their gateway will. */
class EndingsOfATest implements Endings {
  readonly gateway = newToken();
  readonly #untold: Settled[] = [];

  end(settled: Settled): void {
    this.#untold.push(settled);
  }

  tell(keyId: string): readonly Telling[] {
    const ended = this.#untold.filter(({ hold }) => hold.keyId === keyId);
    this.#untold.splice(0);
    const batch = batchName({ gateway: this.gateway, sequence: 1 });
    return ended.length === 0 ? [] : [{ batch, ended, heard: () => undefined, unheard: () => undefined }];
  }
}

/** From another gateway each time, so that each is the first of its own. */
function batchOf(batch: Partial<Batch>): Batch {
  return { gateway: newToken(), sequence: 1, settled: [], toldOf: [], renewed: [], spent: [], usage: [], ...batch };
}

function spendingOf(keyId: string, { budget }: KeyLimits, tokens: number) {
  const { name: period, endsAtMs } = budgetPeriodAt(budget?.per ?? "day", Date.now());
  return { keyId, period, endsAtMs, tokens };
}

function demandOf(limits: KeyLimits): (tokens?: number) => Demand {
  const keyId = newToken().slice(0, 12);
  return (tokens = 1) => ({ keyId, limits, seat: newToken(), tokens });
}
