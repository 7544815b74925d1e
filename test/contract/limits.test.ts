import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import type { KeyLimits } from "#shared/keys/key-limits.ts";
import { systemClock } from "#shared/process/clock.ts";
import { connectRedis, type RedisConnection } from "#shared/process/redis-connection.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import type { Endings, Telling } from "../../services/gateway/limits/endings.ts";
import {
  budgetPeriodAt,
  type Admission,
  type Demand,
  type Hold,
  type Settled,
} from "../../services/gateway/limits/limits.ts";
import { LocalLimits } from "../../services/gateway/limits/local-limits.ts";
import { PlacesAhead } from "../../services/gateway/limits/places-ahead.ts";
import { RedisLimits, spentAt } from "../../services/gateway/limits/redis-limits.ts";
import { batchName, type Batch } from "../../services/gateway/settlement/books.ts";
import { openLimits } from "../../services/gateway/settlement/open-limits.ts";
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

limitsContract("Redis, with places ahead", async () => {
  const { connections, open, write } = redisPlace();
  const [one, other] = [await open(), await open()];
  const endings = new EndingsOfATest();
  const stops: (() => void)[] = [];
  const ahead = (redis: RedisConnection, told?: Endings): PlacesAhead => {
    const places = aheadOn(redis, (hold) => write(redis, { settled: [{ hold, ran: false, usedTokens: 0 }] }), told);
    stops.push(() => places.stop());
    return places;
  };
  return {
    gateways: [ahead(one, endings), ahead(other)],
    settle: async (settled) => write(one, { settled: [settled] }),
    end: (settled) => endings.end(settled),
    spend: async (keyId, limits, tokens) => write(other, { spent: [spendingOf(keyId, limits, tokens)] }),
    close: () => [...stops, ...connections.map((each) => () => each.close())].forEach((end) => end()),
  };
});

describe("places that Redis lends ahead", () => {
  const scarce: [string, KeyLimits][] = [
    ["seats", { concurrency: 60 }],
    // So few a minute that none of them drains while the test takes its time.
    ["requests", { requestsPerMinute: 60 }],
    ["tokens by the minute", { tokensPerMinute: 60 }],
    ["tokens of a budget", { budget: { tokens: 60, per: "day" } }],
  ];

  test.each(scarce)("refuse nobody when they are not needed: of 60 %s all can be had elsewhere", async (_, limits) => {
    const { here, there, demand, lent } = await openTwo(limits);
    const before = await inTurn(10, async () => here.admit(demand()));
    expect(before.map(outcomeOf)).toEqual(Array(10).fill("admitted"));
    expect(lent()).toBeGreaterThan(0);
    const elsewhere = await Promise.all(Array.from({ length: 52 }, async () => there.admit(demand())));
    const admitted = elsewhere.filter(({ outcome }) => outcome === "admitted");
    // What drains in a second is one more.
    expect([50, 51]).toContain(admitted.length);
  });

  test.each(scarce)("are counted: of 60 %s no more are had however two gateways ask", async (_, limits) => {
    const { here, there, demand, lent } = await openTwo(limits);
    const askAll = (gateway: PlacesAhead): Promise<Admission[]> => inTurn(60, async () => gateway.admit(demand()));
    const startedAtMs = performance.now();
    const admissions = (await Promise.all([askAll(here), askAll(there)])).flat();
    const drains = limits.requestsPerMinute !== undefined || limits.tokensPerMinute !== undefined;
    const drained = drains ? Math.ceil((performance.now() - startedAtMs) / 1_000) : 0;
    expect(lent()).toBeGreaterThan(0);
    const admitted = admissions.filter(({ outcome }) => outcome === "admitted");
    expect(admitted.length).toBeGreaterThanOrEqual(60);
    expect(admitted.length).toBeLessThanOrEqual(60 + drained);
  });

  test("keep no long request from all that the short ones of its key leave, however busy these are", async () => {
    const { here, there, demand, lent, end } = await openTwo({ tokensPerMinute: 1_000 });
    const over = new AbortController();
    const short = async (): Promise<void> => {
      while (!over.signal.aborted) await end(holdOf(await here.admit(demand(1))));
    };
    const goesOn = short();
    await until(() => lent() > 2, { what: "the key to be busy" });
    const long = await there.admit(demand(990));
    over.abort();
    await goesOn;
    expect(outcomeOf(long)).toBe("admitted");
  });

  test("are for those who come at once with the one for whom they were asked: of 60 seats 60 are had", async () => {
    const { here, demand, lent } = await openTwo({ concurrency: 60 });
    const admit = vi.spyOn(RedisLimits.prototype, "admit");
    onTestFinished(() => admit.mockRestore());
    const admissions = await Promise.all(Array.from({ length: 60 }, async () => here.admit(demand())));
    expect(admissions.filter(({ outcome }) => outcome === "admitted")).toHaveLength(60);
    expect(lent()).toBeGreaterThan(0);
    // Nobody waited for what is lent to come back, and asked again.
    expect(admit).toHaveBeenCalledTimes(60);
  });

  test("are not lent where they would leave less than half of any limit free", async () => {
    const { here, demand, lent } = await openTwo({ requestsPerMinute: 1_000, concurrency: 7 });
    await inTurn(7, async () => here.admit(demand()));
    expect(lent()).toBe(0);
  });

  async function openTwo(limits: KeyLimits) {
    const { connections, open, write } = redisPlace();
    const asked = vi.spyOn(RedisLimits.prototype, "ahead");
    const ended = await open();
    const gateways = [await open(), await open()].map((redis) =>
      aheadOn(redis, (hold) => write(redis, { settled: [{ hold, ran: false, usedTokens: 0 }] })),
    );
    onTestFinished(() => {
      for (const each of gateways) each.stop();
      for (const each of connections) each.close();
      asked.mockRestore();
    });
    const [here, there] = gateways as [PlacesAhead, PlacesAhead];
    const lent = (): number => asked.mock.settledResults.filter(isLent).length;
    const end = (hold: Hold): Promise<void> => write(ended, { settled: [{ hold, ran: true, usedTokens: 0 }] });
    return { here, there, demand: demandOf(limits), lent, end };
  }

  function isLent(result: { readonly type: string; readonly value: unknown }): boolean {
    return Array.isArray(result.value) && result.value.length > 0;
  }

  async function inTurn<T>(times: number, once: () => Promise<T>): Promise<T[]> {
    const all: T[] = [];
    for (let each = 0; each < times; each += 1) all.push(await once());
    return all;
  }
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

  test("an end that is told twice, once beside another, is spent once", async () => {
    const redis = await openOne();
    const endings = new EndingsOfATest();
    const limits = limitsOn(redis, endings);
    const demand = demandOf({ budget: { tokens: 100, per: "day" } });
    const [first, second] = [holdOf(await limits.admit(demand(40))), holdOf(await limits.admit(demand(40)))];
    endings.end({ hold: first, ran: true, usedTokens: 10 });
    const third = holdOf(await limits.admit(demand(1)));
    endings.end({ hold: first, ran: true, usedTokens: 10 });
    endings.end({ hold: second, ran: true, usedTokens: 20 });
    endings.end({ hold: third, ran: false, usedTokens: 0 });
    expect(holdOf(await limits.admit(demand(100))).budgetTokens).toBe(70);
  });

  test("a thousand demands at once are decided exactly and in the order in which they came, and leave nothing when they end", async () => {
    const redis = await openOne();
    const endings = new EndingsOfATest();
    const limits = limitsOn(redis, endings);
    // So few a minute that none of them drains while the test takes its time.
    const demand = demandOf({ concurrency: 10, budget: { tokens: 95, per: "day" }, requestsPerMinute: 30 });
    for (let wave = 0; wave < 3; wave += 1) {
      const asked = Array.from({ length: 1_000 }, (_, at) => demand(at === 3 ? 20 : 10));
      const admissions = await Promise.all(asked.map((each) => limits.admit(each)));
      const admitted = admissions.filter((admission) => admission.outcome === "admitted");
      expect(admissions.slice(0, 9).map(outcomeOf)).toEqual(Array(9).fill("admitted"));
      expect(admissions.slice(9).map(outcomeOf)).toEqual(Array(991).fill("budget_reserved"));
      expect(admitted.map(({ hold }) => hold.seat)).toEqual(asked.slice(0, 9).map(({ seat }) => seat));
      expect(admitted.map(({ hold }) => hold.budgetTokens)).toEqual([10, 10, 10, 20, 10, 10, 10, 10, 5]);
      expect(admitted.map(({ standing }) => standing.requests?.remaining)).toEqual(
        admitted.map((_, at) => 30 - 9 * wave - at - 1),
      );
      for (const { hold } of admitted) endings.end({ hold, ran: true, usedTokens: 0 });
    }
  });

  test("keys that ask together are decided each by its own limits, also when these change in between", async () => {
    const limits = limitsOn(await openOne());
    const [one, other] = [demandOf({ concurrency: 2 }), demandOf({ requestsPerMinute: 3, tokensPerMinute: 100 })];
    const narrowed = { ...one(), limits: { concurrency: 1 } };
    const widened = { ...narrowed, limits: { concurrency: 3 } };
    const asked = [one(), other(60), narrowed, one(), other(60), widened, other(40), other(0), one()];
    const demands = asked.map((demand) => ({ ...demand, seat: newToken(), keyId: demand.keyId }));
    const ofOne = new Set([0, 2, 3, 5, 8]);
    const keyId = demands[0]?.keyId ?? "";
    const together = demands.map((demand, at) => limits.admit(ofOne.has(at) ? { ...demand, keyId } : demand));
    expect((await Promise.all(together)).map(outcomeOf)).toEqual([
      "admitted",
      "admitted",
      "concurrency",
      "admitted",
      "tokens",
      "admitted",
      "admitted",
      "admitted",
      "concurrency",
    ]);
  });

  test("what a gateway spent that was killed before it could write is given up like its seats", async () => {
    const redis = await openOne();
    const endings = new EndingsOfATest();
    const limits = new RedisLimits(redis, { clock: systemClock, endings, seatLivesMs: 50 });
    const demand = demandOf({ concurrency: 1, budget: { tokens: 100, per: "day" } });
    const hold = holdOf(await limits.admit(demand(60)));
    endings.end({ hold, ran: true, usedTokens: 100 });
    expect(outcomeOf(await limits.admit(demand(1)))).toBe("budget");
    const again = await until(
      async () => {
        const admission = await limits.admit(demand(100));
        return admission.outcome === "admitted" && admission;
      },
      { what: "what was spent to be given up" },
    );
    expect(again.hold.budgetTokens).toBe(100);
  });

  test("a question that goes unanswered fails nobody, and leaves nothing taken once Redis is heard again", async () => {
    const { connections, open } = redisPlace();
    onTestFinished(() => connections.forEach((each) => each.close()));
    const redis = await open(50);
    const operator = await open();
    const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
    const { limits, settlements } = openLimits(
      { kind: "redis", redis },
      { gateway: newToken(), clock: systemClock, log: log as never },
    );
    onTestFinished(() => settlements.stop(AbortSignal.timeout(1_000)));
    const demand = demandOf({ concurrency: 10, budget: { tokens: 1_000_000, per: "day" } });
    const endAll = (admissions: readonly Admission[]): void => {
      for (const admission of admissions) {
        if (admission.outcome === "refused") continue;
        const { hold } = admission;
        settlements.end({ hold, ran: true, usedTokens: 1, usage: usageOf(hold.keyId) });
      }
    };
    const askTwenty = async (): Promise<readonly Admission[]> => {
      const admissions = await Promise.all(Array.from({ length: 20 }, async () => limits.admit(demand(50))));
      for (const each of admissions) if (each.outcome === "admitted") settlements.begin(each.hold);
      return admissions;
    };
    const before = await askTwenty();
    expect(before.map(outcomeOf).filter((outcome) => outcome === "admitted")).toHaveLength(10);
    await operator.run("pause", (each) => each.call("CLIENT", "PAUSE", "300"));
    endAll(before);
    const meanwhile = await askTwenty();
    const heldHere = meanwhile.flatMap((each) => (each.outcome === "admitted" ? [each.hold.kept] : []));
    expect(heldHere).toEqual(Array(10).fill("here"));
    endAll(meanwhile);
    const after = await until(
      async () => {
        const admissions = await askTwenty();
        const kept = admissions.flatMap((each) => (each.outcome === "admitted" ? [each.hold.kept] : []));
        if (kept.length === 10 && kept.every((each) => each === "shared")) return admissions;
        endAll(admissions);
        return false;
      },
      { what: "ten seats that all gateways know of" },
    );
    const elsewhere = await limitsOn(operator).admit(demand(1));
    expect(outcomeOf(elsewhere)).toBe("concurrency");
    endAll(after);
    await settlements.flush();
    const { keyId, limits: keyLimits } = demand();
    expect(await limitsOn(operator).admit(demand(1_000_000))).toMatchObject({
      hold: { budgetTokens: 1_000_000 - (await spentOf(operator, keyId, keyLimits)) },
    });
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
    open: async (commandTimeoutMs = 5_000) => {
      const redis = await connectRedis({ url: server.url, keyPrefix, commandTimeoutMs });
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

function aheadOn(redis: RedisConnection, giveBack: (hold: Hold) => Promise<void>, endings?: Endings): PlacesAhead {
  return new PlacesAhead({
    store: limitsOn(redis, endings),
    giveBack: (hold) => void giveBack(hold).catch(() => undefined),
    onUncertain: () => undefined,
    clock: systemClock,
  });
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

async function spentOf(redis: RedisConnection, keyId: string, { budget }: KeyLimits): Promise<number> {
  const { name } = budgetPeriodAt(budget?.per ?? "day", Date.now());
  return Number(await redis.run("look", (each) => each.get(spentAt(keyId, name))));
}

/** One token of one request. */
function usageOf(keyId: string) {
  const { name: day } = budgetPeriodAt("day", Date.now());
  const counts = { requests: 1, failed: 0, promptTokens: 0, completionTokens: 1, answered: 1 };
  return { day, keyId, model: null, ...counts, firstTokenMs: 1, durationMs: 1 };
}

function demandOf(limits: KeyLimits): (tokens?: number) => Demand {
  const keyId = newToken().slice(0, 12);
  return (tokens = 1) => ({ keyId, limits, seat: newToken(), tokens });
}
