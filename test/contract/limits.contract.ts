import { describe, expect, onTestFinished, test } from "vitest";
import type { KeyLimits } from "#shared/keys/key-limits.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import type { Admission, Demand, Hold, Limits, Refusal, Settled } from "../../services/gateway/limits/limits.ts";

/** Limits as several gateways see them, and what the ends of their requests do to them. */
export interface LimitsPlace {
  /** At least two; in an embedded gateway they are the same one. */
  readonly gateways: readonly [Limits, Limits];
  settle(settled: Settled): Promise<void>;
  /** Has ended at the first gateway, and is not written down yet. */
  end(settled: Settled): void;
  /** Writes down what a key used of its budget in the period of this moment. */
  spend(keyId: string, limits: KeyLimits, tokens: number): Promise<void>;
  close(): void;
}

const aMinute = 60_000;

export function limitsContract(adapter: string, openPlace: () => Promise<LimitsPlace>): void {
  async function open(limits: KeyLimits) {
    const place = await openPlace();
    onTestFinished(() => place.close());
    const [here, there] = place.gateways;
    const keyId = newToken().slice(0, 12);
    const demand = (tokens = 1): Demand => ({ keyId, limits, seat: newToken(), tokens });
    return {
      place,
      here,
      there,
      demand,
      ask: async (tokens?: number) => here.admit(demand(tokens)),
      hold: async (tokens?: number) => holdOf(await here.admit(demand(tokens))),
      settle: (hold: Hold, usedTokens: number, { ran = true } = {}) => place.settle({ hold, ran, usedTokens }),
      spend: (tokens: number) => place.spend(keyId, limits, tokens),
      standing: () => there.standing({ keyId, limits }),
    };
  }

  describe(`limits in ${adapter}`, () => {
    test.each<{ by: Refusal; limits: KeyLimits; tokens: number }>([
      { by: "requests", limits: { requestsPerMinute: 7 }, tokens: 1 },
      { by: "tokens", limits: { tokensPerMinute: 70 }, tokens: 10 },
      { by: "concurrency", limits: { concurrency: 7 }, tokens: 1 },
      { by: "budget_reserved", limits: { budget: { tokens: 70, per: "day" } }, tokens: 10 },
    ])("of 50 requests at once exactly so many run as there is room for, then $by refuses", async (each) => {
      const { here, there, demand } = await open(each.limits);
      const asked = Array.from({ length: 50 }, async (_, at) =>
        (at % 2 === 0 ? here : there).admit(demand(each.tokens)),
      );
      const outcomes = (await Promise.all(asked)).map(outcomeOf);
      expect(outcomes.filter((outcome) => outcome === "admitted")).toHaveLength(7);
      expect(outcomes.filter((outcome) => outcome === each.by)).toHaveLength(43);
    });

    test("a request that is refused takes nothing", async () => {
      const { ask, hold, settle, standing } = await open({
        requestsPerMinute: 10,
        tokensPerMinute: 1_000,
        concurrency: 1,
        budget: { tokens: 10_000, per: "month" },
      });
      const only = await hold(10);
      for (let again = 0; again < 20; again += 1) expect(outcomeOf(await ask(1_000))).toBe("concurrency");
      await settle(only, 10);
      const { requests, tokens } = await standing();
      expect(requests).toMatchObject({ remaining: 9 });
      expect(tokens?.remaining).toBeGreaterThanOrEqual(990);
      expect(await hold(990)).toMatchObject({ tokens: 990, budgetTokens: 990 });
    });

    test("of several limits that refuse, the one that takes the longest to help is told", async () => {
      const all: KeyLimits = { requestsPerMinute: 1, tokensPerMinute: 10, concurrency: 1 };
      const { ask, hold, settle, spend } = await open({ ...all, budget: { tokens: 100, per: "day" } });
      const only = await hold(100);
      expect(outcomeOf(await ask(10))).toBe("budget_reserved");
      await settle(only, 20);
      expect(outcomeOf(await ask(10))).toBe("requests");
      await spend(100);
      expect(outcomeOf(await ask(10))).toBe("budget");

      const withoutBudget = await open(all);
      const held = await withoutBudget.hold(10);
      expect(outcomeOf(await withoutBudget.ask(10))).toBe("concurrency");
      await withoutBudget.settle(held, 10);
      expect(outcomeOf(await withoutBudget.ask(10))).toBe("requests");
    });

    test("who is refused is told when it is worth another try", async () => {
      const byRequests = await open({ requestsPerMinute: 10 });
      for (let each = 0; each < 10; each += 1) await byRequests.hold();
      expectWait(await byRequests.ask(), { fromMs: 1, toMs: aMinute / 10 });

      const byTokens = await open({ tokensPerMinute: 100 });
      await byTokens.hold(100);
      expectWait(await byTokens.ask(50), { fromMs: aMinute / 4, toMs: aMinute / 2 });

      const bySeats = await open({ concurrency: 1 });
      await bySeats.hold();
      expectWait(await bySeats.ask(), { fromMs: 1_000, toMs: 1_000 });

      const byBudget = await open({ budget: { tokens: 5, per: "day" } });
      await byBudget.spend(5);
      expectWait(await byBudget.ask(), { fromMs: 1, toMs: 86_400_000 });
    });

    test("tokens that were reserved and not used are given back", async () => {
      const { ask, hold, settle } = await open({ tokensPerMinute: 1_000 });
      const held = await hold(900);
      expect(outcomeOf(await ask(500))).toBe("tokens");
      await settle(held, 400);
      expect(outcomeOf(await ask(500))).toBe("admitted");
    });

    test("tokens that were used beyond the reservation are charged, and paid off in later minutes", async () => {
      const { ask, hold, settle, standing } = await open({ tokensPerMinute: 1_000, requestsPerMinute: 10 });
      await settle(await hold(100), 3_000);
      const { tokens } = await standing();
      expect(tokens).toMatchObject({ limit: 1_000, remaining: 0 });
      expect(tokens?.resetMs).toBeGreaterThan(2.5 * aMinute);
      expectWait(await ask(1), { fromMs: 1.5 * aMinute, toMs: 2.1 * aMinute });
    });

    test("a debt has an end: no answer keeps a key out for more than ten minutes", async () => {
      const { hold, settle, standing } = await open({ tokensPerMinute: 1_000 });
      await settle(await hold(100), 1_000_000_000);
      expect((await standing()).tokens?.resetMs).toBeLessThanOrEqual(10 * aMinute);
    });

    test("a request that asks for more tokens than the limit runs when nothing else was used", async () => {
      const { ask, hold } = await open({ tokensPerMinute: 1_000 });
      expect(await hold(5_000)).toMatchObject({ tokens: 1_000 });
      expect(outcomeOf(await ask(1))).toBe("tokens");
    });

    test("a request that no machine took is given back whole", async () => {
      const { ask, hold, settle, standing } = await open({
        requestsPerMinute: 1,
        tokensPerMinute: 100,
        concurrency: 1,
        budget: { tokens: 100, per: "day" },
      });
      await settle(await hold(100), 0, { ran: false });
      expect(await standing()).toMatchObject({ requests: { remaining: 1 }, tokens: { remaining: 100 } });
      expect(outcomeOf(await ask(100))).toBe("admitted");
    });

    test("a budget is reserved while requests run, and spent by what they used", async () => {
      const { ask, hold, settle, spend } = await open({ budget: { tokens: 100, per: "month" } });
      const first = await hold(60);
      const second = await hold(60);
      expect([first.budgetTokens, second.budgetTokens]).toEqual([60, 40]);
      expect(outcomeOf(await ask(1))).toBe("budget_reserved");
      await settle(first, 30);
      await spend(30);
      expect((await hold(60)).budgetTokens).toBe(30);
      await settle(second, 70);
      await spend(70);
      expect(outcomeOf(await ask(1))).toBe("budget");
    });

    test("looking how a key stands takes nothing", async () => {
      const { hold, standing } = await open({ requestsPerMinute: 3, tokensPerMinute: 30 });
      await hold(10);
      for (let look = 0; look < 5; look += 1) {
        expect(await standing()).toMatchObject({ requests: { limit: 3, remaining: 2 }, tokens: { remaining: 20 } });
      }
    });

    test("an answer says how its key stands with the limits that it has, and of no others", async () => {
      const { ask } = await open({ requestsPerMinute: 3 });
      const { standing } = await ask();
      expect(standing.requests).toMatchObject({ limit: 3, remaining: 2 });
      expect(standing.tokens).toBeUndefined();
    });

    test("a seat is freed once, however often its end is told", async () => {
      const { ask, hold, settle } = await open({ concurrency: 2, tokensPerMinute: 1_000 });
      const ended = await hold(10);
      await hold(10);
      for (let again = 0; again < 3; again += 1) await settle(ended, 10);
      expect(outcomeOf(await ask())).toBe("admitted");
      expect(outcomeOf(await ask())).toBe("concurrency");
    });

    test("the next request of a client is not refused for the seat or the budget of its last, also before that is written", async () => {
      const { place, ask, hold } = await open({ concurrency: 1, budget: { tokens: 100, per: "day" } });
      const held = await hold(100);
      expect(outcomeOf(await ask(1))).toBe("budget_reserved");
      place.end({ hold: held, ran: true, usedTokens: 10 });
      expect(outcomeOf(await ask(1))).toBe("admitted");
    });

    test("limits in millions are as exact as small ones", async () => {
      const { here, demand, standing } = await open({ requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000_000 });
      const results = await Promise.all(Array.from({ length: 50 }, async () => here.admit(demand(19_999_999))));
      expect(results.map(outcomeOf)).not.toContain("tokens");
      const left = (await standing()).tokens?.remaining ?? 0;
      expect(left).toBeGreaterThanOrEqual(50);
    });
  });
}

export function outcomeOf(admission: Admission): "admitted" | Refusal {
  return admission.outcome === "admitted" ? "admitted" : admission.by;
}

export function holdOf(admission: Admission): Hold {
  if (admission.outcome === "refused") throw new Error(`refused by ${admission.by}`);
  return admission.hold;
}

function expectWait(admission: Admission, { fromMs, toMs }: { fromMs: number; toMs: number }): void {
  const waitMs = admission.outcome === "refused" ? admission.waitMs : Number.NaN;
  expect(waitMs).toBeGreaterThanOrEqual(fromMs);
  expect(waitMs).toBeLessThanOrEqual(toMs);
}
