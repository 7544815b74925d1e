import { bookOf, heldIn, heldOf } from "../harness/book-of-a-test.ts";
import * as fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { freeRate } from "#shared/prices/cost.ts";
import type { Book } from "#shared/records/book.ts";
import type { KeyLimits } from "#shared/records/key-record.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { compareUsage, noUsage, type UsageRow, type UsageRows } from "#shared/usage/usage.ts";
import type { BudgetUnit } from "../../services/gateway/limits/budgets.ts";
import { LocalLimits } from "../../services/gateway/limits/local-limits.ts";
import { TurnableClock } from "../harness/turnable-clock.ts";
import {
  oneRequest,
  type Admission,
  type Demand,
  type Growth,
  type Reservation,
  type LimitsBook,
  type Refusal,
  type Settlement,
} from "../../services/gateway/limits/limits.ts";

/** One book of limits as several gateways see it. */
export interface BookPlace {
  /** At least two; for the only gateway of a state folder they are the same one. */
  readonly books: readonly [LimitsBook, LimitsBook];
  readonly usage: UsageRows;
  readonly spentOf: (bookId: string, period: string, unit?: BudgetUnit) => Promise<number>;
  /** The day of this moment. */
  readonly today: string;
  readonly close: () => void;
}

const aMinute = 60_000;
const allDays = { from: "0000-01-01", to: "9999-12-31" };
const most = 1_000_000_000_000;
const budgetOf = (tokens: number) => ({ tokens, per: "day" }) as const;

export function limitsBookContract(adapter: string, openPlace: () => Promise<BookPlace>): void {
  async function openBook(): Promise<BookPlace> {
    const place = await openPlace();
    onTestFinished(() => place.close());
    return place;
  }

  async function open(limits: KeyLimits) {
    const { books: places, today } = await openBook();
    const [here, there] = places;
    const keyId = newToken().slice(0, 12);
    const books = [bookOf(limits, keyId)];
    const demand = (tokens = 1): Demand => ({ books, seat: newToken(), tokens, rate: freeRate });
    return {
      here,
      there,
      demand,
      ask: async (tokens?: number) => admissionOf(here, demand(tokens)),
      reservation: async (tokens?: number) => reservationOf(await admissionOf(here, demand(tokens))),
      settle: (reservation: Reservation, usedTokens: number, { ran = true } = {}) =>
        here.settle(settlementOf({ gateway: newToken(), ended: [{ reservation, ran, usedTokens, usedMoney: 0 }] })),
      grow: async (growth: Growth, book = here): Promise<Reservation> => {
        const { grown } = await book.settle(settlementOf({ gateway: newToken(), growing: [growth] }));
        return grown[0] as Reservation;
      },
      spend: (completionTokens: number, cost = 0) =>
        there.settle(
          settlementOf({ gateway: newToken(), usage: [rowOf({ day: today, keyId, completionTokens, cost })] }),
        ),
      limitStatus: () => there.limitStatus(books),
    };
  }

  describe(`the book of limits in ${adapter}`, () => {
    test.each<{ by: Refusal; limits: KeyLimits; tokens: number }>([
      { by: "requests", limits: { requestsPerMinute: 7 }, tokens: 1 },
      { by: "tokens", limits: { tokensPerMinute: 70 }, tokens: 10 },
      { by: "concurrency", limits: { concurrency: 7 }, tokens: 1 },
      { by: "budget_reserved", limits: { budget: { tokens: 70, per: "day" } }, tokens: 10 },
    ])("as many of 50 requests at once run as there is room for, then $by refuses", async (each) => {
      const { here, there, demand } = await open(each.limits);
      const asked = Array.from({ length: 50 }, async (_, at) =>
        admissionOf(at % 2 === 0 ? here : there, demand(each.tokens)),
      );
      const outcomes = (await Promise.all(asked)).map(outcomeOf);
      expect(outcomes.filter((outcome) => outcome === "admitted")).toHaveLength(7);
      expect(outcomes.filter((outcome) => outcome === each.by)).toHaveLength(43);
    });

    test("a request that is refused takes nothing", async () => {
      const { ask, reservation, settle, limitStatus } = await open({
        requestsPerMinute: 10,
        tokensPerMinute: 1_000,
        concurrency: 1,
        budget: { tokens: 10_000, per: "month" },
      });
      const only = await reservation(10);
      for (let again = 0; again < 20; again += 1) expect(outcomeOf(await ask(1_000))).toBe("concurrency");
      await settle(only, 10);
      const { requests, tokens } = await limitStatus();
      expect(requests).toMatchObject({ remaining: 9 });
      expect(tokens?.remaining).toBeGreaterThanOrEqual(990);
      expect(heldOf(await reservation(990))).toMatchObject({ tokens: 990, budgetTokens: 990 });
    });

    test("a request of four books takes from all of them, or from none where one is full, and the refusal names the first", async () => {
      const {
        books: [here, there],
      } = await openBook();
      const [user, key, person, team] = [
        { concurrency: 10, budget: budgetOf(1_000) },
        { requestsPerMinute: 30, tokensPerMinute: 2_000 },
        { budget: budgetOf(1_000) },
        { requestsPerMinute: 20, tokensPerMinute: 100_000, concurrency: 2, budget: budgetOf(500) },
      ].map((limits) => bookOf(limits, newToken())) as [Book, Book, Book, Book];
      const books = [user, key, person, team];
      const ask = async (tokens: number, of = books) =>
        admissionOf(here, { books: of, seat: newToken(), tokens, rate: freeRate });
      const admitted = await ask(300);
      expect(admitted.limitStatus).toMatchObject({ requests: { limit: 20 }, tokens: { limit: 2_000 } });
      const { held } = reservationOf(admitted);
      expect(held.map(({ book, tokens, reserved }) => [book, tokens, reserved.tokens])).toEqual([
        [user, 0, 300],
        [key, 300, 0],
        [person, 0, 300],
        [team, 300, 300],
      ]);
      const others = reservationOf(await ask(200));
      for (let again = 0; again < 5; again += 1)
        expect(await ask(1)).toMatchObject({ by: "budget_reserved", book: team });
      expect(outcomeOf(await ask(1_500, [key]))).toBe("admitted");
      expect(await ask(100)).toMatchObject({ by: "tokens", book: key });
      const ended = [reservationOf(admitted), others].map((reservation) => ({
        reservation,
        ran: true,
        usedTokens: 0,
        usedMoney: 0,
      }));
      await there.settle(settlementOf({ gateway: newToken(), ended }));
      const whole = reservationOf(await ask(5_000, [user, person, team]));
      expect(whole.held.map(({ reserved }) => reserved.tokens)).toEqual([1_000, 1_000, 500]);
    });

    test("answers under a spend limit reserve what they may cost, and grow by what is left of it", async () => {
      const { here, demand, grow } = await open({ spend: { millionths: 100_000, per: "month" } });
      const rate = { fixed: 10_000, perMillion: 20_000_000 };
      const ask = async () => admissionOf(here, { ...demand(1_500), promptTokens: 500, rate });
      const [first, second] = [reservationOf(await ask()), reservationOf(await ask())];
      expect([first, second].map((each) => heldOf(each).reserved.money)).toEqual([30_000, 30_000]);
      const more = await grow({ reservation: first, promptTokens: 500, usedTokens: 1_501 });
      expect(heldOf(more).reserved.money).toBe(50_020);
      expect(heldOf(await grow({ reservation: second, promptTokens: 500, usedTokens: 9_000 })).reserved.money).toBe(
        49_980,
      );
      expect(outcomeOf(await ask())).toBe("spend_reserved");
    });

    test("a spend limit that is used up refuses models with a price until its period ends, and no others", async () => {
      const { here, demand, spend } = await open({ spend: { millionths: 100_000, per: "month" } });
      const rate = { fixed: 0, perMillion: 1 };
      await spend(5, 99_999);
      expect(outcomeOf(await admissionOf(here, { ...demand(10), rate: { fixed: 99_999, perMillion: 1 } }))).toBe(
        "prompt",
      );
      expect(outcomeOf(await admissionOf(here, { ...demand(10), rate }))).toBe("admitted");
      await spend(5, 2);
      const refused = await admissionOf(here, { ...demand(10), rate });
      expect(refused).toMatchObject({ by: "spend", period: { used: 100_001 } });
      expectWait(refused, { fromMs: 1, toMs: 31 * 86_400_000 });
      expect(outcomeOf(await admissionOf(here, demand(10)))).toBe("admitted");
    });

    test("what other books than those of keys spent is summed by book, unit and period, also of requests that were cut off", async () => {
      const {
        books: [book],
        spentOf,
      } = await openBook();
      const team = { book: "team:research", unit: "money", period: "9998-02", amount: 40 } as const;
      await book.settle(settlementOf({ spent: [team, { ...team, unit: "tokens", amount: 7 }] }));
      await book.settle(settlementOf({ spent: [team, { ...team, period: "9998-03", amount: 1 }], sequence: 2 }));
      const sums = ["9998-02", "9998-03"].map((period) => spentOf("team:research", period, "money"));
      expect(await Promise.all([...sums, spentOf("team:research", "9998-02")])).toEqual([80, 1, 7]);
    });

    test("every book decides as the pure judge does on several books with budgets of both kinds", async () => {
      const {
        books: [here, there],
      } = await openBook();
      const count = fc.option(fc.integer({ min: 1, max: 3_000 }), { nil: undefined });
      const budget = (of: "tokens" | "millionths") =>
        fc.record({ [of]: fc.integer({ min: 1, max: 9_000 }), per: fc.constant("month") });
      const limits = fc.record(
        { concurrency: fc.integer({ min: 1, max: 4 }), budget: budget("tokens"), spend: budget("millionths") },
        { requiredKeys: [] },
      );
      const asked = fc.record({
        tokens: fc.integer({ min: 1, max: 4_000 }),
        promptTokens: fc.integer({ min: 0, max: 3_000 }),
        rate: fc.oneof(fc.constant(freeRate), fc.record({ fixed: fc.nat(2_000), perMillion: fc.nat(2_000_000) })),
        grows: count,
      });
      await fc.assert(
        fc.asyncProperty(
          fc.array(limits, { minLength: 1, maxLength: 4 }),
          fc.array(asked, { maxLength: 8 }),
          async (all, steps) => {
            const books = all.map((each) => bookOf(each as KeyLimits, newToken().slice(0, 12)));
            const judge = new LocalLimits({ clock: new TurnableClock(), spent: () => 0 });
            for (const { grows, ...step } of steps) {
              const demand = { books, seat: newToken(), ...step };
              const [found, expected] = [await admissionOf(here, demand), judge.admit(demand)];
              expect(decisionOf(found)).toEqual(decisionOf(expected));
              if (grows === undefined || found.outcome === "refused" || expected.outcome === "refused") continue;
              const growth = { promptTokens: step.promptTokens, usedTokens: step.tokens + grows };
              const growing = [{ ...growth, reservation: found.reservation }];
              const { grown } = await there.settle(settlementOf({ gateway: newToken(), growing }));
              expect(grown[0]?.held).toEqual(judge.grow({ ...growth, reservation: expected.reservation }).held);
            }
          },
        ),
        { numRuns: 60 },
      );
    });

    test("the limit with the longest wait is reported when several refuse", async () => {
      const all: KeyLimits = { requestsPerMinute: 1, tokensPerMinute: 10, concurrency: 1 };
      const { ask, reservation, settle, spend } = await open({ ...all, budget: { tokens: 100, per: "day" } });
      const only = await reservation(100);
      expect(outcomeOf(await ask(10))).toBe("budget_reserved");
      await settle(only, 20);
      expect(outcomeOf(await ask(10))).toBe("requests");
      await spend(100);
      expect(outcomeOf(await ask(10))).toBe("budget");

      const withoutBudget = await open(all);
      const held = await withoutBudget.reservation(10);
      expect(outcomeOf(await withoutBudget.ask(10))).toBe("concurrency");
      await withoutBudget.settle(held, 10);
      expect(outcomeOf(await withoutBudget.ask(10))).toBe("requests");
    });

    test("who is refused is told when it is worth another try", async () => {
      const byRequests = await open({ requestsPerMinute: 10 });
      for (let each = 0; each < 10; each += 1) await byRequests.reservation();
      expectWait(await byRequests.ask(), { fromMs: 1, toMs: aMinute / 10 });

      const byTokens = await open({ tokensPerMinute: 100 });
      await byTokens.reservation(100);
      expectWait(await byTokens.ask(50), { fromMs: aMinute / 4, toMs: aMinute / 2 });

      const bySeats = await open({ concurrency: 1 });
      await bySeats.reservation();
      expectWait(await bySeats.ask(), { fromMs: 1_000, toMs: 1_000 });

      const byBudget = await open({ budget: { tokens: 5, per: "day" } });
      await byBudget.spend(5);
      expectWait(await byBudget.ask(), { fromMs: 1, toMs: 86_400_000 });
    });

    test("tokens that were reserved and not used are given back", async () => {
      const { ask, reservation, settle } = await open({ tokensPerMinute: 1_000 });
      const held = await reservation(900);
      expect(outcomeOf(await ask(500))).toBe("tokens");
      await settle(held, 400);
      expect(outcomeOf(await ask(500))).toBe("admitted");
    });

    test("tokens that were used beyond the reservation are charged, and paid off in later minutes", async () => {
      const { ask, reservation, settle, limitStatus } = await open({ tokensPerMinute: 1_000, requestsPerMinute: 10 });
      await settle(await reservation(100), 3_000);
      const { tokens } = await limitStatus();
      expect(tokens).toMatchObject({ limit: 1_000, remaining: 0 });
      expect(tokens?.resetMs).toBeGreaterThan(2.5 * aMinute);
      expectWait(await ask(1), { fromMs: 1.5 * aMinute, toMs: 2.1 * aMinute });
    });

    test("a debt of tokens is paid back whole, however long that takes", async () => {
      const { reservation, settle, limitStatus } = await open({ tokensPerMinute: 1_000 });
      await settle(await reservation(100), 1_000_000);
      const { resetMs = 0 } = (await limitStatus()).tokens ?? {};
      expect(resetMs).toBeGreaterThan(999 * aMinute);
      expect(resetMs).toBeLessThanOrEqual(1_000 * aMinute);
    });

    test.each<{
      limits: KeyLimits;
      tokens: number;
      others?: number;
      used: number;
      grown: { readonly tokens: number; readonly budgetTokens: number };
    }>([
      { limits: { tokensPerMinute: 100_000 }, tokens: 1_010, used: 1_011, grown: { tokens: 2_011, budgetTokens: 0 } },
      { limits: { budget: budgetOf(10_000) }, tokens: 1_010, used: 1_011, grown: { tokens: 0, budgetTokens: 2_011 } },
      { limits: { budget: budgetOf(1_200) }, tokens: 1_010, used: 1_011, grown: { tokens: 0, budgetTokens: 1_200 } },
      {
        limits: { budget: budgetOf(1_200) },
        tokens: 1_010,
        others: 190,
        used: 1_011,
        grown: { tokens: 0, budgetTokens: 1_010 },
      },
      { limits: { budget: budgetOf(1_200) }, tokens: 5_000, used: 1_201, grown: { tokens: 0, budgetTokens: 1_200 } },
      {
        limits: { tokensPerMinute: 1_000_000, budget: budgetOf(1_500) },
        tokens: 1_000,
        used: 1_001,
        grown: { tokens: 2_001, budgetTokens: 1_500 },
      },
    ])("an answer of $used tokens under a reservation of $tokens grows to $grown with $limits", async (each) => {
      const { grow, reservation, ask, settle, limitStatus } = await open(each.limits);
      const held = await reservation(each.tokens);
      if (each.others !== undefined) await reservation(each.others);
      const grown = await grow({ reservation: held, promptTokens: 0, usedTokens: each.used });
      expect(grown).toEqual({ ...held, held: [heldIn(heldOf(held).book, each.grown)] });
      if (each.limits.budget?.tokens === 1_200) expect(outcomeOf(await ask(1))).toBe("budget_reserved");
      await settle(grown, each.used);
      const { tokens } = await limitStatus();
      if (tokens !== undefined) expect(tokens.remaining).toBeGreaterThanOrEqual(tokens.limit - each.used);
      expect(outcomeOf(await ask(1))).toBe("admitted");
    });

    test("an answer gets no more than the minute has left, and what has drained since", async () => {
      const { grow, reservation } = await open({ tokensPerMinute: 1_000 });
      const grown = await grow({ reservation: await reservation(1_010), promptTokens: 0, usedTokens: 1_001 });
      expect(heldOf(grown).tokens).toBeGreaterThanOrEqual(1_000);
      expect(heldOf(grown).tokens).toBeLessThan(1_100);
    });

    test("answers that grow at once share a budget to its last token and not beyond", async () => {
      const { here, there, demand, grow } = await open({ budget: budgetOf(100_000) });
      const answers = Array.from({ length: 50 }, async (_, at) => {
        const book = at % 2 === 0 ? here : there;
        let held = reservationOf(await admissionOf(book, demand(1_000)));
        for (let times = 0; times < 5; times += 1)
          held = await grow({ reservation: held, promptTokens: 0, usedTokens: heldOf(held).budgetTokens + 1 }, book);
        return heldOf(held).budgetTokens;
      });
      const sum = (await Promise.all(answers)).reduce((tokens, each) => tokens + each, 0);
      expect(sum).toBe(100_000);
    });

    test.each<{
      limits: KeyLimits;
      promptTokens: number;
      spent?: number;
      others?: number;
      outcome: Refusal | "admitted";
    }>([
      { limits: { tokensPerMinute: 1_000 }, promptTokens: 2_000, outcome: "admitted" },
      { limits: { tokensPerMinute: 1_000 }, promptTokens: 2_001, outcome: "prompt" },
      { limits: { tokensPerMinute: 1_000 }, promptTokens: 2_000, others: 500, outcome: "tokens" },
      { limits: { budget: budgetOf(1_000) }, promptTokens: 1_900, spent: 100, outcome: "admitted" },
      { limits: { budget: budgetOf(1_000) }, promptTokens: 1_901, spent: 100, outcome: "prompt" },
      { limits: { budget: budgetOf(1_000) }, promptTokens: 1_901, spent: 1_000, outcome: "budget" },
      { limits: { budget: budgetOf(1_000) }, promptTokens: 1_900, others: 101, outcome: "budget_reserved" },
    ])("a prompt of $promptTokens tokens is $outcome with $limits, $spent spent and $others reserved", async (each) => {
      const { here, demand, reservation, spend } = await open(each.limits);
      if (each.spent !== undefined) await spend(each.spent);
      if (each.others !== undefined) await reservation(each.others);
      const { promptTokens } = each;
      expect(outcomeOf(await admissionOf(here, { ...demand(promptTokens + 1_000), promptTokens }))).toBe(each.outcome);
    });

    test("a request that asks for more tokens than the limit runs when nothing else was used", async () => {
      const { ask, reservation } = await open({ tokensPerMinute: 1_000 });
      expect(heldOf(await reservation(5_000))).toMatchObject({ tokens: 1_000 });
      expect(outcomeOf(await ask(1))).toBe("tokens");
    });

    test("a request that no machine took is given back whole", async () => {
      const { ask, reservation, settle, limitStatus } = await open({
        requestsPerMinute: 1,
        tokensPerMinute: 100,
        concurrency: 1,
        budget: { tokens: 100, per: "day" },
      });
      await settle(await reservation(100), 0, { ran: false });
      expect(await limitStatus()).toMatchObject({ requests: { remaining: 1 }, tokens: { remaining: 100 } });
      expect(outcomeOf(await ask(100))).toBe("admitted");
    });

    test("a budget is reserved while requests run, and spent by what they used", async () => {
      const { ask, reservation, settle, spend } = await open({ budget: { tokens: 100, per: "month" } });
      const first = await reservation(60);
      const second = await reservation(60);
      expect([heldOf(first).budgetTokens, heldOf(second).budgetTokens]).toEqual([60, 40]);
      expect(outcomeOf(await ask(1))).toBe("budget_reserved");
      await settle(first, 30);
      await spend(30);
      expect(heldOf(await reservation(60)).budgetTokens).toBe(30);
      await settle(second, 70);
      await spend(70);
      expect(outcomeOf(await ask(1))).toBe("budget");
    });

    test("looking how a key stands takes nothing", async () => {
      const { reservation, limitStatus } = await open({ requestsPerMinute: 3, tokensPerMinute: 30 });
      await reservation(10);
      for (let look = 0; look < 5; look += 1) {
        expect(await limitStatus()).toMatchObject({ requests: { limit: 3, remaining: 2 }, tokens: { remaining: 20 } });
      }
    });

    test("an answer says how its key stands with the limits that it has, and of no others", async () => {
      const { ask } = await open({ requestsPerMinute: 3 });
      const { limitStatus } = await ask();
      expect(limitStatus.requests).toMatchObject({ limit: 3, remaining: 2 });
      expect(limitStatus.tokens).toBeUndefined();
    });

    test("a seat is freed once, however often its end is told", async () => {
      const { ask, reservation, settle } = await open({ concurrency: 2, tokensPerMinute: 1_000 });
      const ended = await reservation(10);
      await reservation(10);
      for (let again = 0; again < 3; again += 1) await settle(ended, 10);
      expect(outcomeOf(await ask())).toBe("admitted");
      expect(outcomeOf(await ask())).toBe("concurrency");
    });

    test("the next request of a client is not refused for the seat or the budget of its last, also before that is acknowledged", async () => {
      const { here, ask, reservation } = await open({ concurrency: 1, budget: { tokens: 100, per: "day" } });
      const held = await reservation(100);
      expect(outcomeOf(await ask(1))).toBe("budget_reserved");
      const settled = here.settle(
        settlementOf({ ended: [{ reservation: held, ran: true, usedTokens: 10, usedMoney: 0 }] }),
      );
      expect(outcomeOf(await ask(1))).toBe("admitted");
      await settled;
    });

    test("a count of tokens takes a request of the limit per minute, and no seat, tokens or budget", async () => {
      const { here, demand, reservation, limitStatus } = await open({
        requestsPerMinute: 3,
        tokensPerMinute: 100,
        concurrency: 1,
        budget: { tokens: 100, per: "day" },
      });
      const count = async () => outcomeOf(await admissionOf(here, { ...demand(), ...oneRequest }));
      expect(await count()).toBe("admitted");
      await reservation(100);
      expect([await count(), await count()]).toEqual(["admitted", "requests"]);
      expect(await limitStatus()).toMatchObject({ requests: { remaining: 0 }, tokens: { limit: 100 } });
    });

    test("limits in millions are as exact as small ones", async () => {
      const { here, demand, limitStatus } = await open({
        requestsPerMinute: 1_000_000,
        tokensPerMinute: 1_000_000_000,
      });
      const results = await Promise.all(Array.from({ length: 50 }, async () => admissionOf(here, demand(19_999_999))));
      expect(results.map(outcomeOf)).not.toContain("tokens");
      const left = (await limitStatus()).tokens?.remaining ?? 0;
      expect(left).toBeGreaterThanOrEqual(50);
    });

    test("rows add up over settlements and gateways, and are read back in order", async () => {
      const {
        books: [book],
        usage,
      } = await openBook();
      const one = rowOf({ model: "llama3:8b", requests: 2, failed: 1, promptTokens: 10, completionTokens: 20 });
      const other = rowOf({ model: "llama3:8b", answered: 1, firstTokenMs: 30, durationMs: 40 });
      const older = rowOf({ day: "9998-01-31", keyId: "zzzzzzzzzzzz" });
      const otherKey = rowOf({ keyId: "AAAAAAAAAAAA", model: "a" });
      await book.settle(settlementOf({ usage: [one, otherKey] }));
      await book.settle(settlementOf({ usage: [other], sequence: 2 }));
      await book.settle(settlementOf({ usage: [one, older], gateway: "another" }));
      expect((await usage.read(allDays)).rows).toEqual([
        older,
        otherKey,
        rowOf({
          model: "llama3:8b",
          requests: 5,
          failed: 2,
          promptTokens: 20,
          completionTokens: 40,
          answered: 1,
          firstTokenMs: 30,
          durationMs: 40,
        }),
      ]);
    });

    test("the use of teams, people, machines and end users adds up to that of all, also if it is sent again", async () => {
      const {
        books: [here, there],
        usage,
      } = await openBook();
      const team = { team: "a/b:c ü", person: "ab".repeat(32) };
      const endUser = "abcdefABCDEF:0f";
      const counts = { promptTokens: 7, completionTokens: 3, answered: 1, firstTokenMs: 4, durationMs: 5, cost: 6 };
      const rows = [
        rowOf({ machine: "attic", endUser, ...counts }),
        rowOf({ machine: "cellar", endUser: "abcdefABCDEF:1f", ...counts }),
        rowOf({ machine: "cloud", kind: "external", ...counts }),
        rowOf({ machine: "attic", ...team, ...counts }),
        rowOf({ machine: "cloud", ...team, kind: "external", ...counts }),
        rowOf({ model: null, failed: 1 }),
      ];
      const settlement = settlementOf({ usage: rows });
      for (let again = 0; again < 2; again += 1) await here.settle(settlement);
      await there.settle(settlementOf({ gateway: "another", usage: rows.slice(0, 1) }));
      const twice = { requests: 2, promptTokens: 14, completionTokens: 6, cost: 12 };
      const thrice = { requests: 3, promptTokens: 21, completionTokens: 9, cost: 18 };
      const once = { requests: 1, promptTokens: 7, completionTokens: 3, cost: 6 };
      const sum = (of: Partial<UsageRow>, used: Partial<UsageRow>) => ({
        ...noUsage,
        day: "9998-02-01",
        ...of,
        ...used,
      });
      expect((await usage.read(allDays)).rows).toEqual([
        rowOf({ model: null, failed: 1 }),
        rowOf({ ...thrice, answered: 3, firstTokenMs: 12, durationMs: 15 }),
        rowOf({ kind: "external", ...counts }),
        rowOf({ ...team, ...counts }),
        rowOf({ ...team, kind: "external", ...counts }),
      ]);
      expect((await usage.read(allDays, "machines")).rows).toEqual([
        sum({ machine: "attic" }, thrice),
        sum({ machine: "cellar" }, once),
        sum({ machine: "cloud" }, twice),
      ]);
      expect((await usage.read(allDays, "users")).rows).toEqual([
        sum({ endUser }, twice),
        sum({ endUser: "abcdefABCDEF:1f" }, once),
      ]);
    });

    test("a settlement that is sent again is booked once", async () => {
      const {
        books: [book],
        usage,
        spentOf,
      } = await openBook();
      const row = rowOf({ promptTokens: 3, completionTokens: 4 });
      const settlement = settlementOf({ usage: [row] });
      for (let again = 0; again < 3; again += 1) await book.settle(settlement);
      await book.settle(settlementOf({ sequence: 2 }));
      await book.settle(settlement);
      expect((await usage.read(allDays)).rows).toEqual([row]);
      expect(await spentOf(row.keyId, "9998-02-01")).toBe(7);
    });

    test("a request that named no model is told apart from every model", async () => {
      const {
        books: [book],
        usage,
      } = await openBook();
      const rows = [null, "null", "requests", ":", "a:requests:b", "hf.co/org/qwen:q4_K-M", "ü 😀\n"].map((model) =>
        rowOf({ model, requests: 1 }),
      );
      await book.settle(settlementOf({ usage: rows }));
      const { rows: read } = await usage.read(allDays);
      expect(read).toHaveLength(rows.length);
      expect(read).toEqual(expect.arrayContaining(rows));
    });

    test("a day is read whole, however much there is of it", async () => {
      const {
        books: [book],
        usage,
      } = await openBook();
      const rows = Array.from({ length: 3_000 }, (_, at) =>
        rowOf({ model: `model-${at}`, requests: at + 1, durationMs: at }),
      );
      await book.settle(settlementOf({ usage: rows }));
      expect((await usage.read(allDays)).rows).toEqual(rows.toSorted(compareUsage));
    });

    test("only the days that are asked for are read, the first and the last included", async () => {
      const {
        books: [book],
        usage,
      } = await openBook();
      const rows = ["9998-01-30", "9998-01-31", "9998-02-01", "9998-02-02"].map((day) => rowOf({ day }));
      await book.settle(settlementOf({ usage: rows }));
      expect((await usage.read({ from: "9998-01-31", to: "9998-02-01" })).rows).toEqual(rows.slice(1, 3));
      expect((await usage.read({ from: "9998-03-01", to: "9998-03-31" })).rows).toEqual([]);
    });

    test("a day that has long passed is forgotten when newer ones are written", async () => {
      const {
        books: [book],
        usage,
      } = await openBook();
      const days = Array.from({ length: 450 }, (_, at) =>
        new Date(Date.UTC(2026, 0, 1 + at)).toISOString().slice(0, 10),
      );
      await book.settle(settlementOf({ usage: days.map((day) => rowOf({ day })) }));
      const { rows: read } = await usage.read(allDays);
      expect(read.length).toBeGreaterThanOrEqual(400);
      expect(read.length).toBeLessThanOrEqual(401);
      expect(read.at(-1)?.day).toBe(days.at(-1));
    });

    test("large numbers are kept to the last digit", async () => {
      const {
        books: [book],
        usage,
        spentOf,
      } = await openBook();
      const row = rowOf({ promptTokens: most - 1, completionTokens: 0, durationMs: most + 1 });
      await book.settle(settlementOf({ usage: [row] }));
      await book.settle(settlementOf({ usage: [rowOf({ promptTokens: 2 })], sequence: 2 }));
      expect((await usage.read(allDays)).rows).toEqual([{ ...row, requests: 2, promptTokens: most + 1 }]);
      expect(await spentOf(row.keyId, "9998-02-01")).toBe(most + 1);
    });

    test("a row that grew too large is left out and told, and fails neither sums nor settlements", async () => {
      const {
        books: [book],
        usage,
        spentOf,
      } = await openBook();
      const row = rowOf({ day: "9998-02-01", promptTokens: Number.MAX_SAFE_INTEGER });
      const other = rowOf({ day: "9998-02-01", keyId: "another00000", promptTokens: 5 });
      for (const sequence of [1, 2, 3]) await book.settle(settlementOf({ usage: [row], sequence }));
      await book.settle(settlementOf({ usage: [other], sequence: 4 }));
      expect(await usage.read(allDays)).toEqual({ rows: [other], unread: 1 });
      expect(await spentOf(row.keyId, "9998-02-01")).toBeGreaterThanOrEqual(Number.MAX_SAFE_INTEGER);
    });

    test("what a key has spent is told apart by key and by period", async () => {
      const {
        books: [book],
        spentOf,
      } = await openBook();
      const used = [
        { day: "9998-02-01", tokens: 1 },
        { day: "9998-02-28", tokens: 10 },
        { day: "9998-03-01", tokens: 100 },
      ];
      const usage = used.map(({ day, tokens }) => rowOf({ day, completionTokens: tokens }));
      await book.settle(settlementOf({ usage }));
      const keyId = rowOf({}).keyId;
      const periods = ["9998-02-01", "9998-02", "9998-03", "9998-04", "9998-02-02"];
      expect(await Promise.all(periods.map((period) => spentOf(keyId, period)))).toEqual([1, 11, 100, 0, 0]);
      expect(await spentOf("another00000", "9998-02")).toBe(0);
    });

    test("a settlement with nothing in it says how many gateways there are", async () => {
      const {
        books: [book],
      } = await openBook();
      expect(await book.settle(settlementOf({}))).toEqual({ gateways: 1, grown: [], admissions: [] });
    });

    test("a book that is closed says that it is unavailable", async () => {
      const {
        books: [book],
        usage,
        close,
      } = await openBook();
      close();
      await expect(book.settle(settlementOf({ usage: [rowOf({})] }))).rejects.toMatchObject({
        code: "backend_unavailable",
      });
      await expect(usage.read(allDays)).rejects.toMatchObject({ code: "backend_unavailable" });
    });
  });
}

export function outcomeOf(admission: Admission): "admitted" | Refusal {
  return admission.outcome === "admitted" ? "admitted" : admission.by;
}

/** Returns what a decision comes down to, whoever makes it. */
function decisionOf(admission: Admission): unknown {
  if (admission.outcome === "admitted") return admission.reservation.held;
  return { by: admission.by, book: admission.book, used: admission.period?.used };
}

export function reservationOf(admission: Admission): Reservation {
  if (admission.outcome === "refused") throw new Error(`refused by ${admission.by}`);
  return admission.reservation;
}

function expectWait(admission: Admission, { fromMs, toMs }: { fromMs: number; toMs: number }): void {
  const waitMs = admission.outcome === "refused" ? admission.waitMs : Number.NaN;
  expect(waitMs).toBeGreaterThanOrEqual(fromMs);
  expect(waitMs).toBeLessThanOrEqual(toMs);
}

/** Asks a book for the admission of one request, as a gateway of its own. */
export async function admissionOf(book: LimitsBook, demand: Demand): Promise<Admission> {
  const { admissions } = await book.settle(settlementOf({ gateway: newToken(), demands: [demand] }));
  return admissions[0] as Admission;
}

export function settlementOf(settlement: Partial<Settlement>): Settlement {
  const nothing = {
    acknowledged: 0,
    ended: [],
    charges: [],
    renewed: [],
    growing: [],
    demands: [],
    usage: [],
    spent: [],
    running: [],
    over: [],
    requests: [],
  };
  return { gateway: "a-gateway", sequence: 1, ...nothing, ...settlement };
}

/** A row of a day far in the future, so that nothing of it expires whenever the test runs. */
export function rowOf(row: Partial<UsageRow>): UsageRow {
  return {
    ...noUsage,
    day: "9998-02-01",
    keyId: "abcdefABCDEF",
    model: "llama3",
    requests: 1,
    ...row,
  };
}
