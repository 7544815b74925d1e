import { bookOf, heldIn, heldOf } from "../../../harness/book-of-a-test.ts";
import { expect, test } from "vitest";
import { freeRate } from "#shared/prices/cost.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { KeyLimits } from "#shared/records/key-record.ts";
import type {
  Admission,
  Demand,
  Reservation,
  LimitsBook,
  Settlement,
} from "../../../../services/gateway/limits/limits.ts";
import { LocalLimits } from "../../../../services/gateway/limits/local-limits.ts";
import { SharedLimits } from "../../../../services/gateway/limits/shared-limits.ts";
import { Settlements } from "../../../../services/gateway/limits/settlements.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";

const awayFault = new Fault("backend_unavailable", { message: "away", internal: "no reply" });

/** A store that lets everybody in, and counts how often it was asked; it can be away. */
class Store implements LimitsBook {
  asked = 0;
  failure: Error | undefined;
  gateways = 1;
  /** What it says was used of the budget. */
  spent: number | undefined;
  readonly settlements: Settlement[] = [];
  endsKnownAtAdmission: readonly string[] = [];

  async limitStatus() {
    if (this.failure !== undefined) throw this.failure;
    return {};
  }

  async settle(settlement: Settlement) {
    this.asked += settlement.demands.length;
    if (this.failure !== undefined) throw this.failure;
    this.settlements.push(settlement);
    const grown = settlement.growing.map(({ reservation }) => reservation);
    return { gateways: this.gateways, grown, admissions: settlement.demands.map((each) => this.#admit(each)) };
  }

  #admit({ books, seat, tokens, rate }: Demand): Admission {
    this.endsKnownAtAdmission = this.settlements.flatMap(({ ended }) =>
      ended.map(({ reservation }) => reservation.seat),
    );
    const held = books.map((book) => heldIn(book, { tokens }));
    const reservation = { held, seat, rate, kept: "shared" } as const;
    return {
      outcome: "admitted",
      reservation,
      limitStatus: {},
      spent: [this.spent === undefined ? {} : { tokens: this.spent }],
    };
  }
}

async function open({ gateways = 2 } = {}) {
  const clock = new TurnableClock();
  const store = new Store();
  store.gateways = gateways;
  const logged: string[] = [];
  const log = (...told: unknown[]) => void logged.push(String(told.at(-1)));
  const local = new LocalLimits({ clock, spent: () => 0 });
  const settlements = new Settlements({
    book: store,
    local,
    gateway: "a-gateway",
    clock,
    log: { info: log, warn: log, error: log },
  });
  const limits = new SharedLimits({ book: store, local, settlements });
  await clock.advanceAwaiting(0);
  store.settlements.length = 0;
  let seats = 0;
  const ask = async (keyLimits: KeyLimits, tokens = 1) =>
    limits.admit({ books: [bookOf(keyLimits)], seat: `seat-${++seats}`, tokens, rate: freeRate });
  return { clock, store, local, limits, logged, ask, settlements };
}

const keptOf = (admission: Admission) => (admission.outcome === "admitted" ? admission.reservation.kept : admission.by);

function reservationOf(admission: Admission): Reservation {
  if (admission.outcome === "refused") throw new Error(`refused by ${admission.by}`);
  return admission.reservation;
}

test("shared limits of a budget are what was left of it when the store last said, however often it goes away", async () => {
  const { ask, store, local, clock } = await open({ gateways: 1 });
  const budget = { budget: { tokens: 100, per: "day" } } as const;
  store.spent = 60;
  const last = reservationOf(await ask(budget, 10));
  local.settle({ reservation: last, ran: true, usedTokens: 15, usedMoney: 0 });
  store.failure = awayFault;
  const first = await ask(budget, 10);
  expect(heldOf(reservationOf(first)).budgetTokens).toBe(10);
  local.settle({ reservation: reservationOf(first), ran: true, usedTokens: 25, usedMoney: 0 });
  expect(keptOf(await ask(budget, 10))).toBe("budget");
  clock.advance(3_600_000);
  expect(keptOf(await ask(budget, 10))).toBe("budget");
  clock.advance(86_400_000);
  expect(keptOf(await ask(budget, 10))).toBe("here");
});

test("a gateway's share of a budget does not grow again by what the gateway uses of it", async () => {
  const { ask, store, local } = await open({ gateways: 2 });
  const budget = { budget: { tokens: 100, per: "day" } } as const;
  store.spent = 60;
  local.settle({ reservation: reservationOf(await ask(budget, 1)), ran: true, usedTokens: 0, usedMoney: 0 });
  store.failure = awayFault;
  const granted = [];
  for (const usedTokens of [15, 5]) {
    const reservation = reservationOf(await ask(budget, 15));
    granted.push(heldOf(reservation).budgetTokens);
    local.settle({ reservation, ran: true, usedTokens, usedMoney: 0 });
  }
  expect([...granted, keptOf(await ask(budget, 15))]).toEqual([15, 5, "budget"]);
});

test("the store knows the end of a request before it admits the next one of the same turn", async () => {
  const { ask, store, settlements } = await open();
  const reservation = reservationOf(await ask({ concurrency: 1 }));
  settlements.release(reservation);
  await ask({ concurrency: 1 });
  expect(store.endsKnownAtAdmission).toEqual([reservation.seat]);
});

test("while the store is away a gateway grants its share of each limit, and no request fails for it", async () => {
  const { ask, store } = await open();
  store.failure = awayFault;
  const kept = [];
  for (let each = 0; each < 4; each += 1) kept.push(keptOf(await ask({ requestsPerMinute: 4 })));
  expect(kept).toEqual(["here", "here", "requests", "requests"]);
});

test("a gateway grants its share for a moment more, until the others have told the store what they granted", async () => {
  const { ask, store, clock } = await open();
  store.failure = awayFault;
  const kept = async () => keptOf(await ask({ requestsPerMinute: 2 }));
  expect([await kept(), await kept()]).toEqual(["here", "requests"]);
  store.failure = undefined;
  await clock.advanceAwaiting(1_000);
  expect([await kept(), store.asked]).toEqual(["requests", 1]);
  await clock.advanceAwaiting(3_000);
  expect(await kept()).toBe("shared");
});

test("a store that is away is asked once in a second, by no request, and its fall and its return are told once", async () => {
  const { ask, store, clock, logged } = await open();
  store.failure = awayFault;
  await Promise.all(Array.from({ length: 5 }, () => ask({})));
  const asked = store.asked;
  await clock.advanceAwaiting(5_000);
  await Promise.all(Array.from({ length: 10 }, () => ask({})));
  expect(store.asked).toBe(asked);
  store.failure = undefined;
  await clock.advanceAwaiting(4_000);
  for (let each = 0; each < 3; each += 1) expect(keptOf(await ask({}))).toBe("shared");
  expect(logged).toEqual([expect.stringContaining("its share"), expect.stringContaining("again")]);
});

test("the share granted meanwhile is charged before the store admits anything again, and once", async () => {
  const { ask, store, clock } = await open({ gateways: 1 });
  const limits: KeyLimits = { requestsPerMinute: 60 };
  await ask(limits);
  store.failure = awayFault;
  for (let each = 0; each < 10; each += 1) await ask(limits);
  await clock.advanceAwaiting(900);
  store.failure = undefined;
  await clock.advanceAwaiting(200);
  expect(keptOf(await ask(limits))).toBe("shared");
  await clock.advanceAwaiting(10_000);
  const charges = store.settlements.flatMap((settlement) => settlement.charges);
  // One of the eleven drains in the second.
  expect(charges).toMatchObject([{ book: bookOf(limits), tokens: 0 }]);
  expect(charges[0]?.requests).toBeCloseTo(10, 0);
});

test("requests that the store admitted count in the share from the moment of the fall", async () => {
  const { ask, store, local } = await open();
  const limits: KeyLimits = { concurrency: 4, requestsPerMinute: 100, tokensPerMinute: 200 };
  const first = reservationOf(await ask(limits, 40));
  await ask(limits, 40);
  store.failure = awayFault;
  expect(keptOf(await ask(limits))).toBe("concurrency");
  local.settle({ reservation: first, ran: true, usedTokens: 40, usedMoney: 0 });
  expect(keptOf(await ask(limits, 30))).toBe("tokens");
  expect(keptOf(await ask(limits, 20))).toBe("here");
});

test("a seat that the store may have given unheard is freed in it, and the request runs on another", async () => {
  const { ask, store, clock } = await open();
  store.failure = awayFault;
  const reservation = reservationOf(await ask({ concurrency: 2 }));
  expect(reservation.kept).toBe("here");
  await ask({ concurrency: 2 });
  await ask({ requestsPerMinute: 5 });
  store.failure = undefined;
  await clock.advanceAwaiting(1_000);
  const freed = store.settlements.flatMap(({ ended }) => ended);
  expect(freed).toMatchObject([
    {
      reservation: { seat: reservation.seat, kept: "shared", held: [{ tokens: 0 }] },
      ran: true,
      usedTokens: 0,
      usedMoney: 0,
    },
  ]);
});

test("an answer grows by this gateway's share alone while the store is away, and the store hears of it", async () => {
  const { ask, store, settlements, clock } = await open();
  const limits: KeyLimits = { tokensPerMinute: 4_000 };
  const reservation = reservationOf(await ask(limits, 500));
  store.failure = awayFault;
  const asked = settlements.grow({ reservation, promptTokens: 0, usedTokens: 501 });
  await clock.advanceAwaiting(0);
  expect(await asked).toEqual({ ...reservation, held: [heldIn(bookOf(limits), { tokens: 1_501 })] });
  const again = await settlements.grow({ reservation: await asked, promptTokens: 0, usedTokens: 1_502 });
  expect(again).toEqual({ ...reservation, held: [heldIn(bookOf(limits), { tokens: 2_000 })] });
  store.failure = undefined;
  await clock.advanceAwaiting(1_000);
  const charges = store.settlements.flatMap((settlement) => settlement.charges);
  expect(charges).toMatchObject([{ book: bookOf(limits), requests: 0 }]);
  expect(charges[0]?.tokens).toBeCloseTo(1_500, -2);
});

test("how a key stands with shared limits is told by whoever decides", async () => {
  const { limits, store } = await open();
  const key = [bookOf({ requestsPerMinute: 10 })];
  expect(await limits.limitStatus(key)).toEqual({});
  store.failure = awayFault;
  expect(await limits.limitStatus(key)).toMatchObject({ requests: { limit: 5, remaining: 5 } });
});

test("a share is at least one of everything, however many gateways there are", async () => {
  const { ask, store } = await open({ gateways: 50 });
  store.failure = awayFault;
  const limits: KeyLimits = {
    requestsPerMinute: 10,
    tokensPerMinute: 10,
    concurrency: 10,
    budget: { tokens: 10, per: "day" },
  };
  expect(heldOf(reservationOf(await ask(limits, 10)))).toMatchObject({ tokens: 1, budgetTokens: 1 });
});

test("a share of a budget is what is left of it, divided: what was spent was spent with all", async () => {
  const clock = new TurnableClock();
  const local = new LocalLimits({ clock, spent: () => 0 });
  local.gateways = 2;
  const limits: KeyLimits = { budget: { tokens: 1_000, per: "day" } };
  local.learn({ books: [bookOf(limits)] }, [{ tokens: 600 }]);
  const ask = async () =>
    local.admit({ books: [bookOf(limits)], seat: String(Math.random()), tokens: 1_000, rate: freeRate });
  expect(heldOf(reservationOf(await ask())).budgetTokens).toBe(200);
  expect(keptOf(await ask())).toBe("budget_reserved");
});

test("the memory of a gateway keeps nothing of keys that are idle", async () => {
  const clock = new TurnableClock();
  const local = new LocalLimits({ clock, spent: () => 0 });
  const ask = async (keyId: string, limits: KeyLimits, tokens = 1) =>
    local.admit({ books: [bookOf(limits, keyId)], seat: keyId, tokens, rate: freeRate });
  for (let key = 0; key < 1_000; key += 1) {
    const reservation = reservationOf(await ask(`key-${key}`, { concurrency: 1, requestsPerMinute: 60 }));
    local.settle({ reservation, ran: true, usedTokens: 1, usedMoney: 0 });
  }
  await ask("under way", { concurrency: 1 });
  const indebted = reservationOf(await ask("indebted", { tokensPerMinute: 10 }));
  local.settle({ reservation: indebted, ran: true, usedTokens: 1_000, usedMoney: 0 });
  expect(local.size).toBe(1_002);
  clock.advance(60_000);
  await ask("newcomer", { requestsPerMinute: 60 });
  expect(local.size).toBe(3);
  expect(keptOf(await ask("under way", { concurrency: 1 }))).toBe("concurrency");
  expect(keptOf(await ask("indebted", { tokensPerMinute: 10 }))).toBe("tokens");
});

test("the memory of a gateway lets a key in again when the period of its budget has ended", async () => {
  const clock = new TurnableClock({ wallMs: Date.UTC(2026, 0, 31, 23, 59, 59) });
  const local = new LocalLimits({ clock, spent: (_, period) => (period === "2026-01" ? 100 : 0) });
  const limits: KeyLimits = { budget: { tokens: 100, per: "month" } };
  const ask = async () => local.admit({ books: [bookOf(limits)], seat: "seat", tokens: 1, rate: freeRate });
  expect(await ask()).toMatchObject({ by: "budget", waitMs: 1_000 });
  clock.advance(1_000);
  expect(keptOf(await ask())).toBe("here");
});
