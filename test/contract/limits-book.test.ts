import { bookOf, heldOf } from "../harness/book-of-a-test.ts";
import { keptRequestsDefault } from "#shared/requests/request-records.ts";
import { randomUUID } from "node:crypto";
import { freeRate } from "#shared/prices/cost.ts";
import { spentByOthers } from "../../services/gateway/limits/budgets.ts";
import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Book } from "#shared/records/book.ts";
import type { KeyLimits } from "#shared/records/key-record.ts";
import { openStateDatabase } from "#shared/store/state-database.ts";
import { systemClock } from "#shared/process/clock.ts";
import { connectRedis, redisCommandTimeoutMs, type RedisConnection } from "#shared/process/redis-connection.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { openUsage } from "#shared/usage/usage.ts";
import { budgetPeriodAt } from "../../services/gateway/limits/budgets.ts";
import type { Admission, Demand, SeatedAnswer, Reservation, Settled } from "../../services/gateway/limits/limits.ts";
import { openLimits } from "../../services/gateway/limits/open-limits.ts";
import { RedisLimitsBook, spentAt } from "../../services/gateway/limits/redis-limits.ts";
import { SqliteLimitsBook } from "../../services/gateway/limits/open-limits.ts";
import type { SomeServer } from "../harness/found-servers.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { TurnableClock } from "../harness/turnable-clock.ts";
import { until } from "../harness/until.ts";
import {
  admissionOf,
  reservationOf,
  limitsBookContract,
  outcomeOf,
  rowOf,
  settlementOf,
} from "./limits-book.contract.ts";

const allDays = { from: "0000-01-01", to: "9999-12-31" };

let server: SomeServer;
beforeAll(async () => void (server = await redisUrl()));
afterAll(() => server.stop());

limitsBookContract("SQLite", async () => {
  const folder = folderOfTest();
  const clock = new TurnableClock();
  const database = openStateDatabase(folder);
  const book = new SqliteLimitsBook(database, { clock });
  return {
    books: [book, book],
    usage: openUsage({ kind: "sqlite", database }),
    spentOf: async (...of) => book.spentOf(...of),
    today: budgetPeriodAt("day", clock.wall()).name,
    close: () => database.close(),
  };
});

limitsBookContract("Redis", async () => {
  const { connections, open } = redisPlace();
  const [one, other] = [await open(), await open()];
  return {
    books: [bookOn(one), bookOn(other)],
    usage: openUsage({ kind: "redis", redis: one }),
    spentOf: (...of) => spentOf(one, ...of),
    today: today(),
    close: () => connections.forEach((each) => each.close()),
  };
});

describe("limits of several gateways in Redis", () => {
  const seated: KeyLimits = { concurrency: 1, budget: { tokens: 100, per: "day" } };

  test("the seats and the budget of a gateway that was killed are free by themselves", async () => {
    const redis = await openOne();
    const limits = bookOn(redis, 50);
    const demand = demandOf(seated);
    expect(outcomeOf(await admissionOf(limits, demand(60)))).toBe("admitted");
    const again = await until(
      async () => {
        const admission = await admissionOf(limits, demand(100));
        return admission.outcome === "admitted" && admission;
      },
      { what: "the seat to lapse" },
    );
    expect(heldOf(again.reservation).budgetTokens).toBe(100);
  });

  test("a seat that is renewed lives on, and one that had lapsed is taken again with what it had reserved", async () => {
    const redis = await openOne();
    const limits = bookOn(redis, 1);
    const demand = demandOf({ concurrency: 2, budget: { tokens: 100, per: "day" } });
    const lapsed = reservationOf(await admissionOf(limits, demand(60)));
    const probe = await until(
      async () => {
        const admission = await admissionOf(limits, demand(100));
        return (
          admission.outcome === "admitted" &&
          heldOf(admission.reservation).budgetTokens === 100 &&
          admission.reservation
        );
      },
      { what: "the seat to lapse" },
    );
    const ended = [{ reservation: probe, ran: false, usedTokens: 0, usedMoney: 0 }];
    await bookOn(redis).settle(settlementOf({ renewed: [lapsed], ended }));
    await bookOn(redis).settle(settlementOf({ sequence: 2, renewed: [lapsed] }));
    expect(heldOf(reservationOf(await admissionOf(bookOn(redis), demand(100)))).budgetTokens).toBe(40);
    expect(outcomeOf(await admissionOf(bookOn(redis), demand(1)))).toBe("budget_reserved");
  });

  test("an idle key leaves nothing behind", async () => {
    const redis = await openOne();
    const book = bookOn(redis);
    const demand = demandOf({ concurrency: 1, budget: { tokens: 100, per: "day" }, requestsPerMinute: 10 });
    const reservation = reservationOf(await admissionOf(book, demand(10)));
    const keyId = heldOf(reservation).book.id;
    const under = ["limits", "seats", "reservations"].map((what) => `${what}:${keyId}`);
    const timesToLive = () => Promise.all(under.map((name) => redis.run("look", (each) => each.pttl(name))));
    for (const ttlMs of await timesToLive()) expect(ttlMs).toBeGreaterThan(0);
    const usage = [rowOf({ day: today(), keyId, completionTokens: 20 })];
    await book.settle(settlementOf({ ended: [{ reservation, ran: true, usedTokens: 20, usedMoney: 0 }], usage }));
    expect(await timesToLive()).toEqual([expect.any(Number), -2, -2]);
    expect((await timesToLive())[0]).toBeGreaterThan(0);
    expect(await redis.run("look", (each) => each.pttl(spentAt(keyId, today())))).toBeGreaterThan(86_400_000);
  });

  test("the budgets of books begin anew with their day or month in UTC, whatever was spent before", async () => {
    const clock = { now: 0, wall: () => clock.now };
    const redis = await openOne();
    const book = new RedisLimitsBook(redis, { clock });
    const team = {
      ...bookOf({ spend: { millionths: 500, per: "month" }, budget: { tokens: 90, per: "day" } }, "team:a"),
    };
    const ask = async (atMs: number, rate = freeRate) => {
      clock.now = atMs;
      return admissionOf(book, { books: [team], seat: newToken(), tokens: 1, rate });
    };
    const priced = { fixed: 1, perMillion: 1 };
    const row = rowOf({ day: "9998-01-31", promptTokens: 90, cost: 500 });
    await book.settle(settlementOf({ usage: [row], spent: spentByOthers(row, [team]) }));
    const lastMs = Date.UTC(9998, 0, 31, 23, 59, 59, 999);
    expect(await ask(lastMs, priced)).toMatchObject({ by: "budget", waitMs: 1 });
    expect(await ask(lastMs - 86_400_000, priced)).toMatchObject({
      by: "spend",
      waitMs: 86_400_001,
      period: { used: 500 },
    });
    expect(outcomeOf(await ask(lastMs - 86_400_000))).toBe("admitted");
    expect(outcomeOf(await ask(lastMs + 1, priced))).toBe("admitted");
    const names = await redis.run("look", (each) => each.keys(`${each.options.keyPrefix}spent*:team:a:*`));
    expect(names.map((name) => name.replace(/^.*?:spent/, "spent")).toSorted()).toEqual([
      "spent-money:team:a:9998-01",
      "spent:team:a:9998-01-31",
    ]);
  });

  test("a clock that was set back keeps nobody out for longer than before", async () => {
    const redis = await openOne();
    const demand = demandOf({ requestsPerMinute: 1_200, tokensPerMinute: 1_200 });
    const limits = bookOn(redis);
    const [{ id: keyId }] = demand().books as [Book];
    const inAnHour = String(Date.now() + 3_600_000);
    await redis.run("set the clock back", (each) =>
      each.hset(`limits:${keyId}`, {
        requests: "1200",
        requestsAt: inAnHour,
        tokens: "1200",
        tokensAt: inAnHour,
      }),
    );
    expect(outcomeOf(await admissionOf(limits, demand()))).toBe("requests");
    await until(async () => (await admissionOf(limits, demand())).outcome === "admitted", {
      what: "the next to be let in",
    });
  });

  test("a script that Redis does not know any more is sent to it again", async () => {
    const redis = await openOne();
    const demand = demandOf(seated);
    const reservation = reservationOf(await admissionOf(bookOn(redis), demand()));
    await redis.run("forget scripts", (each) => each.script("FLUSH"));
    expect(outcomeOf(await admissionOf(bookOn(redis), demand()))).toBe("concurrency");
    await bookOn(redis).settle(settlementOf({ ended: [{ reservation, ran: true, usedTokens: 1, usedMoney: 0 }] }));
    expect(outcomeOf(await admissionOf(bookOn(redis), demand()))).toBe("admitted");
  });

  test("the kept sum of many reservations is exact, heals after another version has changed seats, and is counted anew in time", async () => {
    const redis = await openOne();
    const book = bookOn(redis);
    const demand = demandOf({ budget: { tokens: 2_000, per: "day" }, spend: { millionths: 5_000, per: "day" } });
    const rate = { fixed: 0, perMillion: 1_000_000 };
    const ask = async (tokens = 10) => reservationOf(await admissionOf(book, { ...demand(tokens), rate }));
    const held: Reservation[] = [];
    for (let each = 0; each < 100; each += 1) held.push(await ask());
    const [{ id }] = demand().books as [Book];
    const sums = async () => (await redis.run("look", (each) => each.hget(`limits:${id}`, "reserved"))) ?? "";
    expect(await sums()).toMatch(/^100 \d+ 1000 1000$/);
    const ended = held.splice(0, 10).map((reservation) => ({ reservation, ran: true, usedTokens: 0, usedMoney: 0 }));
    await book.settle(settlementOf({ gateway: newToken(), ended }));
    expect(await sums()).toMatch(/^90 \d+ 900 900$/);
    const [seat = ""] = held.splice(0, 1).map((each) => each.seat);
    await redis.run("free a seat as version 0.2.0 does", (each) =>
      each
        .multi()
        .zrem(`seats:${id}`, seat)
        .hdel(`reservations:${id}`, seat)
        .hdel(`reservations-money:${id}`, seat)
        .exec(),
    );
    held.push(await ask());
    expect(await sums()).toMatch(/^90 \d+ 900 900$/);
    const setSums = (text: string) => redis.run("set the sum", (each) => each.hset(`limits:${id}`, "reserved", text));
    await setSums(`90 ${Date.now()} 1995 900`);
    expect(heldOf(await ask()).budgetTokens).toBe(5);
    await setSums(`91 ${Date.now() - 11_000} 1999 900`);
    expect(heldOf(await ask(2_000)).budgetTokens).toBe(1_095);
  });

  test("an end that comes twice in different settlements frees one seat and one reservation", async () => {
    const redis = await openOne();
    const demand = demandOf({ concurrency: 2, budget: { tokens: 100, per: "day" } });
    const ended: Settled[] = [
      {
        reservation: reservationOf(await admissionOf(bookOn(redis), demand(50))),
        ran: true,
        usedTokens: 0,
        usedMoney: 0,
      },
    ];
    await admissionOf(bookOn(redis), demand(50));
    for (const gateway of ["one", "two", "three"]) await bookOn(redis).settle(settlementOf({ gateway, ended }));
    expect(heldOf(reservationOf(await admissionOf(bookOn(redis), demand(100)))).budgetTokens).toBe(50);
    expect(outcomeOf(await admissionOf(bookOn(redis), demand(1)))).toBe("budget_reserved");
  });

  test("a thousand demands at once are decided exactly and in the order in which they came, and leave nothing when they end", async () => {
    const book = bookOn(await openOne());
    const gateway = newToken();
    const settling: Promise<unknown>[] = [];
    // So few a minute that none of them drains while the test takes its time.
    const demand = demandOf({ concurrency: 10, budget: { tokens: 95, per: "day" }, requestsPerMinute: 30 });
    for (let wave = 0; wave < 3; wave += 1) {
      const asked = Array.from({ length: 1_000 }, (_, at) => demand(at === 3 ? 20 : 10));
      const admissions = await Promise.all(asked.map((each) => admissionOf(book, each)));
      const admitted = admissions.filter((admission) => admission.outcome === "admitted");
      expect(admissions.slice(0, 9).map(outcomeOf)).toEqual(Array(9).fill("admitted"));
      expect(admissions.slice(9).map(outcomeOf)).toEqual(Array(991).fill("budget_reserved"));
      expect(admitted.map(({ reservation }) => reservation.seat)).toEqual(asked.slice(0, 9).map(({ seat }) => seat));
      expect(admitted.map(({ reservation }) => heldOf(reservation).budgetTokens)).toEqual([
        10, 10, 10, 20, 10, 10, 10, 10, 5,
      ]);
      expect(admitted.map(({ limitStatus }) => limitStatus.requests?.remaining)).toEqual(
        admitted.map((_, at) => 30 - 9 * wave - at - 1),
      );
      const ended = admitted.map(({ reservation }) => ({ reservation, ran: true, usedTokens: 0, usedMoney: 0 }));
      settling.push(book.settle(settlementOf({ gateway, sequence: wave + 1, ended })));
    }
    await Promise.all(settling);
  });

  test("keys that ask together are decided each by its own limits, also when these change in between", async () => {
    const limits = bookOn(await openOne());
    const [one, other] = [demandOf({ concurrency: 2 }), demandOf({ requestsPerMinute: 3, tokensPerMinute: 100 })];
    const [{ id }] = one().books as [Book];
    const narrowed = { ...one(), books: [bookOf({ concurrency: 1 }, id)] };
    const widened = { ...one(), books: [bookOf({ concurrency: 3 }, id)] };
    const asked = [one(), other(60), narrowed, one(), other(60), widened, other(40), other(0), one()];
    const together = asked.map((demand) => admissionOf(limits, demand));
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

  test("a settlement is not booked before an earlier one of its gateway, and then each is booked once", async () => {
    const redis = await openOne();
    const book = bookOn(redis);
    const usage = [rowOf({ completionTokens: 1 })];
    const settlements = [3, 4, 5].map((sequence) => settlementOf({ sequence, acknowledged: 2, usage }));
    const [first, ...later] = settlements;
    for (const each of later) await expect(book.settle(each)).rejects.toMatchObject({ code: "backend_unavailable" });
    if (first !== undefined) await book.settle(first);
    for (const each of [...settlements, ...settlements]) await book.settle(each);
    expect((await openUsage({ kind: "redis", redis }).read(allDays)).rows).toMatchObject([{ requests: 3 }]);
  });

  test("a store that was emptied or set back to an older copy goes on with the next settlement", async () => {
    const redis = await openOne();
    const book = bookOn(redis);
    const usage = [rowOf({ completionTokens: 1 })];
    await book.settle(settlementOf({ sequence: 8, acknowledged: 7, usage }));
    await redis.run("set it back", (each) => each.set("written:a-gateway", 5));
    await book.settle(settlementOf({ sequence: 9, acknowledged: 8, usage }));
    await redis.run("empty it", (each) => each.del("written:a-gateway"));
    await book.settle(settlementOf({ sequence: 10, acknowledged: 9, usage }));
    await book.settle(settlementOf({ sequence: 10, acknowledged: 9, usage }));
    expect((await openUsage({ kind: "redis", redis }).read(allDays)).rows).toMatchObject([{ requests: 3 }]);
  });

  test("requests that a gateway granted by itself are charged beside those that the store admitted", async () => {
    const book = bookOn(await openOne());
    const demand = demandOf({ requestsPerMinute: 10, tokensPerMinute: 100 });
    const { book: of } = heldOf(reservationOf(await admissionOf(book, demand(40))));
    await book.settle(settlementOf({ charges: [{ book: of, requests: 8, tokens: 50 }] }));
    expect(await book.limitStatus([of])).toMatchObject({ requests: { remaining: 1 } });
    expect(outcomeOf(await admissionOf(book, demand(40)))).toBe("tokens");
    await book.settle(settlementOf({ sequence: 2, charges: [{ book: of, requests: 1_000, tokens: -50 }] }));
    expect((await book.limitStatus([of])).requests?.resetMs).toBeLessThanOrEqual(60_000);
    expect(outcomeOf(await admissionOf(book, demand(40)))).toBe("requests");
  });

  test("gateways that settle in one Redis know how many they are", async () => {
    const book = bookOn(await openOne());
    expect(await book.settle(settlementOf({ gateway: "one" }))).toEqual({ gateways: 1, grown: [], admissions: [] });
    expect(await book.settle(settlementOf({ gateway: "two" }))).toEqual({ gateways: 2, grown: [], admissions: [] });
    expect(await book.settle(settlementOf({ gateway: "one", sequence: 2 }))).toEqual({
      gateways: 2,
      grown: [],
      admissions: [],
    });
  });

  describe("a gateway that is gone", () => {
    const used = (completionTokens: number) =>
      rowOf({ day: today(), keyId: "abcdefABCDEF", failed: 1, completionTokens });
    const open = async (isThereForMs = 300) => {
      const redis = await openOne();
      const openedBook = () => new RedisLimitsBook(redis, { clock: systemClock, isThereForMs });
      const booked = async () => (await openUsage({ kind: "redis", redis }).read(allDays)).rows[0];
      return { redis, dying: openedBook(), other: openedBook(), booked };
    };
    const cut = JSON.stringify({ id: "req_1", code: "gateway_lost", tried: [{ machine: "attic" }], totalMs: 1, at: 5 });
    const records = async (redis: RedisConnection) =>
      redis.run("read records", async (client) =>
        (await client.xrange("requests", "-", "+")).map(([, [, text]]): object => JSON.parse(text ?? "")),
      );
    const untilGone = (other: RedisLimitsBook) => {
      let sequence = 0;
      return until(
        async () => (await other.settle(settlementOf({ gateway: "other", sequence: (sequence += 1) }))).gateways === 1,
        { what: "the gateway to be gone" },
      );
    };

    test("a gateway that is gone has what its requests under way used booked once, in the latest state, and spent of the budget", async () => {
      const { redis, dying, other, booked } = await open();
      const running = [
        { id: 1, spent: [], usage: used(10), request: cut },
        { id: 2, spent: [], usage: used(5), request: cut },
      ];
      await dying.settle(settlementOf({ gateway: "dying", running }));
      await dying.settle(
        settlementOf({ gateway: "dying", sequence: 2, running: [{ id: 1, spent: [], usage: used(30) }] }),
      );
      await dying.settle(settlementOf({ gateway: "dying", sequence: 3, over: [2], usage: [used(7)] }));
      expect(await booked()).toMatchObject({ requests: 1, completionTokens: 7 });
      await untilGone(other);
      expect(await booked()).toMatchObject({ requests: 2, failed: 2, completionTokens: 37 });
      expect(await spentOf(redis, "abcdefABCDEF", today())).toBe(37);
      const { id, code, tried, at } = JSON.parse(cut);
      const record = { id, code, tried, at, totalMs: 0, promptTokens: 0, completionTokens: 30 };
      expect(await records(redis)).toEqual([record]);
      await other.settle(settlementOf({ gateway: "other", sequence: 1_000, acknowledged: 999 }));
      expect(await booked()).toMatchObject({ requests: 2, completionTokens: 37 });
      expect(await records(redis)).toHaveLength(1);
    });

    test("a gateway that is gone frees the seat of an answer, and has not failed it, where a client resumes that at another gateway", async () => {
      const { dying, other, booked } = await open(1_000);
      const concurrency = 1;
      const demand = demandOf({ concurrency });
      const { seat, ...held } = reservationOf(await admissionOf(dying, demand()));
      const books = held.held.map(({ book }) => book);
      const of = (told: Omit<SeatedAnswer, "books">, tokens: number) => {
        const answer = { ...told, books };
        const usage = { ...used(tokens), keyId: heldOf({ ...held, seat }).book.id, requests: answer.isResumed ? 0 : 1 };
        return { id: 1, spent: [], usage, answer };
      };
      const job = newToken();
      const first = { job, seat, isResumed: false };
      const second = { job, seat: newToken(), isResumed: true };
      await dying.settle(settlementOf({ gateway: "dying", running: [of(first, 10)] }));
      const renewed = [{ ...held, seat: second.seat }];
      await other.settle(settlementOf({ gateway: "other", running: [of(second, 1)], renewed }));
      // The gateway before is not dead, and tells of the answer once more.
      await dying.settle(settlementOf({ gateway: "dying", sequence: 2, running: [of(first, 10)] }));
      expect(outcomeOf(await admissionOf(other, demand()))).toBe("concurrency");
      const ended = [{ reservation: { ...held, seat: second.seat }, ran: true, usedTokens: 5, usedMoney: 0 }];
      const usage = [{ ...of(second, 5).usage, failed: 0 }];
      await other.settle(settlementOf({ gateway: "other", sequence: 2, over: [1], ended, usage }));
      expect(outcomeOf(await admissionOf(other, demand()))).toBe("admitted");
      await untilGone(other);
      expect(await booked()).toMatchObject({ requests: 1, failed: 0, completionTokens: 15 });
    });

    test("a gateway that is gone and comes back books its requests itself, in place of what was booked without it", async () => {
      const { redis, dying, other, booked } = await open();
      await dying.settle(
        settlementOf({ gateway: "dying", running: [{ id: 1, spent: [], usage: used(10), request: cut }] }),
      );
      await untilGone(other);
      expect(await booked()).toMatchObject({ requests: 1, completionTokens: 10 });
      expect(await records(redis)).toMatchObject([{ code: "gateway_lost" }]);
      await dying.settle(
        settlementOf({ gateway: "dying", sequence: 2, running: [{ id: 1, spent: [], usage: used(20) }] }),
      );
      const usage = [rowOf({ ...used(25), failed: 0 })];
      const whole = JSON.stringify({ id: "req_1", code: "ok" });
      await dying.settle(settlementOf({ gateway: "dying", sequence: 3, over: [1], usage, requests: [whole] }));
      expect(await booked()).toMatchObject({ requests: 1, failed: 0, completionTokens: 25 });
      expect(await records(redis)).toEqual([JSON.parse(whole)]);
      expect(await spentOf(redis, "abcdefABCDEF", today())).toBe(25);
    });
  });

  test("a pause of this process is not blamed on Redis, also for commands that wait for others", async () => {
    const { connections, open } = redisPlace();
    onTestFinished(() => connections.forEach((each) => each.close()));
    const book = bookOn(await open(redisCommandTimeoutMs));
    const demand = demandOf({ requestsPerMinute: 10 });
    await admissionOf(book, demand());
    const sent = admissionOf(book, demand());
    await setImmediate();
    const waiting = admissionOf(book, demand());
    const endMs = performance.now() + 2 * redisCommandTimeoutMs;
    while (performance.now() < endMs);
    expect((await Promise.all([sent, waiting])).map(outcomeOf)).toEqual(["admitted", "admitted"]);
  });

  test("a question that goes unanswered fails nobody, and leaves nothing taken once Redis is heard again", async () => {
    const { connections, open } = redisPlace();
    onTestFinished(() => connections.forEach((each) => each.close()));
    const redis = await open(50);
    const operator = await open();
    const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
    const { limits, settlements } = openLimits(
      { kind: "redis", redis },
      {
        gateway: newToken(),
        clock: systemClock,
        kept: keptRequestsDefault,
        tellMachines: () => undefined,
        log: log as never,
      },
    );
    onTestFinished(() => settlements.stop(AbortSignal.timeout(1_000)));
    const demand = demandOf({ concurrency: 10, budget: { tokens: 1_000_000, per: "day" } });
    const endAll = (admissions: readonly Admission[]): void => {
      for (const admission of admissions) {
        if (admission.outcome === "refused") continue;
        const { reservation } = admission;
        const usage = rowOf({ day: today(), keyId: heldOf(reservation).book.id, completionTokens: 1 });
        settlements.end({ reservation, ran: true, usedTokens: 1, usage });
      }
    };
    const askTwenty = async (): Promise<readonly Admission[]> => {
      const admissions = await Promise.all(Array.from({ length: 20 }, async () => limits.admit(demand(50))));
      for (const each of admissions) if (each.outcome === "admitted") settlements.begin(each.reservation);
      return admissions;
    };
    const before = await askTwenty();
    expect(before.map(outcomeOf).filter((outcome) => outcome === "admitted")).toHaveLength(10);
    await operator.run("pause", (each) => each.call("CLIENT", "PAUSE", "300"));
    endAll(before);
    const meanwhile = await askTwenty();
    const heldHere = meanwhile.flatMap((each) => (each.outcome === "admitted" ? [each.reservation.kept] : []));
    expect(heldHere).toEqual(Array(10).fill("here"));
    endAll(meanwhile);
    const after = await until(
      async () => {
        const admissions = await askTwenty();
        const kept = admissions.flatMap((each) => (each.outcome === "admitted" ? [each.reservation.kept] : []));
        if (kept.length === 10 && kept.every((each) => each === "shared")) return admissions;
        endAll(admissions);
        return false;
      },
      { what: "ten seats that all gateways know of" },
    );
    const elsewhere = await admissionOf(bookOn(operator), demand(1));
    expect(outcomeOf(elsewhere)).toBe("concurrency");
    endAll(after);
    await settlements.flush();
    const whole = heldOf(reservationOf(await admissionOf(bookOn(operator), demand(1_000_000))));
    expect(whole.budgetTokens).toBe(1_000_000 - (await spentOf(operator, whole.book.id, today())));
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
  };
}

function bookOn(redis: RedisConnection, seatLivesMs?: number): RedisLimitsBook {
  return new RedisLimitsBook(redis, { clock: systemClock, ...(seatLivesMs && { seatLivesMs }) });
}

function today(): string {
  return budgetPeriodAt("day", Date.now()).name;
}

async function spentOf(redis: RedisConnection, ...of: Parameters<typeof spentAt>): Promise<number> {
  return Number(await redis.run("look", (each) => each.get(spentAt(...of))));
}

function demandOf(limits: KeyLimits): (tokens?: number) => Demand {
  const books = [bookOf(limits, newToken().slice(0, 12))];
  return (tokens = 1) => ({ books, seat: newToken(), tokens, rate: freeRate });
}
