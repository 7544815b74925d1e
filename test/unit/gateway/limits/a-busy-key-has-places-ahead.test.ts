import { describe, expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import type { KeyLimits } from "#shared/keys/key-limits.ts";
import type {
  Admission,
  Admitted,
  AheadWish,
  Demand,
  Hold,
  LendingLimits,
} from "../../../../services/gateway/limits/limits.ts";
import { PlacesAhead } from "../../../../services/gateway/limits/places-ahead.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";

const away = new Fault("backend_unavailable", { message: "away", internal: "no reply" });
const refusal: Admission = { outcome: "refused", by: "requests", waitMs: 1_000, standing: {} };

/** A store that admits everybody and lends all that is wished for, unless a test says otherwise. */
class Store implements LendingLimits {
  readonly demands: Demand[] = [];
  readonly wishes: AheadWish[] = [];
  /** The next answers to demands. */
  readonly answers: Admission[] = [];
  lends: "all" | "nothing" | "no answer" = "all";

  async admit(demand: Demand): Promise<Admission> {
    this.demands.push(demand);
    return this.answers.shift() ?? admittedTo(demand);
  }

  async ahead(wish: AheadWish): Promise<readonly Admitted[]> {
    this.wishes.push(wish);
    if (this.lends === "no answer") throw away;
    const { seats, ...of } = wish;
    return this.lends === "nothing" ? [] : seats.map((seat) => admittedTo({ ...of, seat }));
  }

  async standing() {
    return {};
  }
}

function admittedTo({ keyId, limits, seat, tokens }: Demand): Admitted {
  const hold: Hold = { keyId, limits, seat, tokens, budgetTokens: 0, kept: "shared" };
  return { outcome: "admitted", hold, standing: {}, spent: 7 };
}

const someLimits: KeyLimits = { requestsPerMinute: 1_000, concurrency: 1_000 };

function open() {
  const clock = new TurnableClock();
  const store = new Store();
  const givenBack: string[] = [];
  const uncertain: string[] = [];
  const places = new PlacesAhead({
    store,
    giveBack: ({ seat }) => givenBack.push(seat),
    onUncertain: ({ seat }) => uncertain.push(seat),
    clock,
  });
  let seats = 0;
  const ask = async (tokens = 10, limits: KeyLimits = someLimits): Promise<Admission> =>
    places.admit({ keyId: "abcdefABCDEF", limits, seat: `own-${++seats}`, tokens });
  const askTimes = async (times: number, tokens?: number): Promise<string[]> => {
    const got: string[] = [];
    for (let each = 0; each < times; each += 1) got.push(seatOf(await ask(tokens)));
    return got;
  };
  return { clock, store, places, givenBack, uncertain, ask, askTimes };
}

function seatOf(admission: Admission): string {
  if (admission.outcome === "refused") throw new Error(`refused by ${admission.by}`);
  return admission.hold.seat;
}

describe("a key whose requests come one after the other", () => {
  test("is asked for by the first of them, and then for many at once", async () => {
    const { store, askTimes } = open();
    const seats = await askTimes(100);
    expect(store.demands).toHaveLength(4);
    expect(store.wishes.length).toBeLessThan(15);
    expect(new Set(seats).size).toBe(100);
    const lent = new Set(store.wishes.flatMap((wish) => wish.seats));
    expect(seats.slice(4).filter((seat) => !lent.has(seat))).toEqual([]);
  });

  test("has no more places waiting than requests came of late, and never more than 64", async () => {
    const { store, askTimes, clock } = open();
    await askTimes(5);
    expect(store.wishes.map(({ seats }) => seats.length)).toEqual([4]);
    await askTimes(1_000);
    expect(Math.max(...store.wishes.map(({ seats }) => seats.length))).toBeLessThanOrEqual(64);
    clock.advance(1_000);
    store.wishes.splice(0);
    await askTimes(5);
    expect(store.wishes.map(({ seats }) => seats.length)).toEqual([4]);
  });

  test("gives back what was not needed within 100 ms, each place once, and leaves nothing behind", async () => {
    const { store, askTimes, clock, givenBack } = open();
    const used = await askTimes(6);
    clock.advance(99);
    expect(givenBack).toEqual([]);
    clock.advance(500);
    const lent = store.wishes.flatMap(({ seats }) => seats);
    expect(givenBack.toSorted()).toEqual(lent.filter((seat) => !used.includes(seat)).toSorted());
    expect(givenBack).not.toEqual([]);
    expect(clock.timersWaiting).toBe(0);
  });

  test("does not use what it was lent for longer than 100 ms, nor for a request that asks for more", async () => {
    const { store, ask, askTimes, clock } = open();
    await askTimes(5, 10);
    const asked = store.demands.length;
    expect(seatOf(await ask(11))).toMatch(/^own-/);
    expect(seatOf(await ask(9))).not.toMatch(/^own-/);
    clock.advance(100);
    expect(seatOf(await ask(9))).toMatch(/^own-/);
    expect(store.demands).toHaveLength(asked + 2);
  });

  test("asks ahead for as many tokens as the longest of its requests of late", async () => {
    const { store, ask, askTimes } = open();
    await ask(500);
    await askTimes(3, 10);
    expect(store.wishes.map(({ tokens }) => tokens)).toEqual([500]);
  });

  test("has no place under limits that were changed meanwhile, also when it is lent late", async () => {
    const { store, ask, askTimes, givenBack } = open();
    await askTimes(4);
    const narrowed = { ...someLimits, concurrency: 2 };
    expect(seatOf(await ask(10, narrowed))).toMatch(/^own-/);
    expect(givenBack.toSorted()).toEqual(store.wishes.flatMap(({ seats }) => [...seats]).toSorted());
    expect(givenBack).toHaveLength(4);
    expect(seatOf(await ask(10, { ...narrowed }))).toMatch(/^own-/);
  });

  test("does not say of a budget what was true when its place was taken", async () => {
    const { ask, askTimes } = open();
    expect(await ask()).toMatchObject({ spent: 7 });
    await askTimes(4);
    expect(await ask()).not.toHaveProperty("spent");
  });

  test("asks one by one for a second where nothing can be lent", async () => {
    const { store, askTimes, clock } = open();
    store.lends = "nothing";
    await askTimes(50);
    expect(store.demands).toHaveLength(50);
    expect(store.wishes).toHaveLength(1);
    clock.advance(1_000);
    await askTimes(5);
    expect(store.wishes).toHaveLength(2);
  });

  test("asks one by one while the store does not lend for want of an answer, and frees what may have been taken", async () => {
    const { store, askTimes, uncertain } = open();
    store.lends = "no answer";
    expect(await askTimes(50)).toHaveLength(50);
    expect(store.demands).toHaveLength(50);
    expect(uncertain).toEqual(store.wishes.flatMap(({ seats }) => [...seats]));
    expect(uncertain).toHaveLength(4);
  });

  test("gives back all that waits when its gateway stops, and is asked for one by one from then on", async () => {
    const { store, places, askTimes, givenBack, clock } = open();
    const used = await askTimes(6);
    places.stop();
    const lent = store.wishes.flatMap(({ seats }) => [...seats]);
    expect(givenBack.toSorted()).toEqual(lent.filter((seat) => !used.includes(seat)).toSorted());
    expect(clock.timersWaiting).toBe(0);
    const asked = store.demands.length;
    await askTimes(10);
    expect(store.demands).toHaveLength(asked + 10);
  });
});

test("requests of a key that come seldom ask each for itself, and nothing is taken ahead", async () => {
  const { store, askTimes, clock } = open();
  for (let each = 0; each < 20; each += 1) {
    await askTimes(1);
    clock.advance(20);
  }
  expect(store.demands).toHaveLength(20);
  expect(store.wishes).toEqual([]);
});

describe("a request that is refused", () => {
  test("while places are lent asks once more when they have come back", async () => {
    const { store, ask, clock } = open();
    store.answers.push({ ...refusal, lentForMs: 200 });
    const asked = ask();
    await clock.advanceAwaiting(199);
    expect(store.demands).toHaveLength(1);
    await clock.advanceAwaiting(1);
    expect(await asked).toMatchObject({ outcome: "admitted" });
    expect(store.demands).toHaveLength(2);
  });

  test("is told so at once where nothing is lent, and when it was refused again", async () => {
    const { store, ask, clock } = open();
    store.answers.push(refusal);
    expect(await ask()).toBe(refusal);
    const again = { ...refusal, lentForMs: 200 };
    store.answers.push(again, again);
    const asked = ask();
    await clock.advanceAwaiting(200);
    expect(await asked).toBe(again);
    expect(store.demands).toHaveLength(3);
  });
});
