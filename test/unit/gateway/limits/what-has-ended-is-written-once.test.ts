import { describe, expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import type { UsageRow } from "#shared/usage/usage.ts";
import type { Charge, Hold, LimitsBook, Settled, Settlement } from "../../../../services/gateway/limits/limits.ts";
import { Settlements } from "../../../../services/gateway/limits/settlements.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";

/** A book that can be away, or write and be unable to say so. Each settlement is booked once, as the port asks for. */
class HeldBook implements Pick<LimitsBook, "settle"> {
  readonly sent: Settlement[] = [];
  readonly written: Settlement[] = [];
  state: "there" | "away" | "unheard" = "there";
  gateways = 1;

  async settle(settlement: Settlement) {
    this.sent.push(settlement);
    if (this.state !== "away" && !this.written.some(({ sequence }) => sequence === settlement.sequence)) {
      this.written.push(settlement);
    }
    if (this.state !== "there") throw new Fault("backend_unavailable", { message: "away" });
    return { gateways: this.gateways };
  }

  requests(): number {
    return this.written.flatMap(({ usage }) => usage).reduce((sum, { requests }) => sum + requests, 0);
  }
}

const rowOf = (row: Partial<UsageRow> = {}): UsageRow => ({
  day: "2026-01-01",
  keyId: "abcdefABCDEF",
  model: "llama3",
  requests: 1,
  failed: 0,
  promptTokens: 2,
  completionTokens: 3,
  answered: 1,
  firstTokenMs: 4,
  durationMs: 5,
  ...row,
});

const holdOf = (seat: string, hold: Partial<Hold> = {}): Hold => ({
  keyId: "abcdefABCDEF",
  limits: { concurrency: 5 },
  seat,
  tokens: 10,
  budgetTokens: 0,
  kept: "shared",
  ...hold,
});

/** Its first heartbeat has gone out, and it is quiet. */
async function open(options: { rowsMax?: number } = {}) {
  const clock = new TurnableClock();
  const books = new HeldBook();
  const charges: Charge[] = [];
  const freed: Settled[] = [];
  const logged: string[] = [];
  const log = (level: string) => (_: unknown, text?: string) => void logged.push(`${level}: ${text ?? String(_)}`);
  const settlements = new Settlements({
    book: books,
    local: { settle: (settled) => void freed.push(settled), takeCharges: () => charges.splice(0) },
    gateway: "a-gateway",
    clock,
    log: { info: log("info"), warn: log("warn"), error: log("error") },
    ...options,
  });
  await clock.advanceAwaiting(1_000);
  books.sent.length = 0;
  books.written.length = 0;
  const end = (ended: Partial<Parameters<Settlements["end"]>[0]> = {}) =>
    settlements.end({ ran: true, usedTokens: 5, usage: rowOf(), ...ended });
  return { clock, books, charges, freed, logged, settlements, end };
}

describe("a request that has ended", () => {
  test("is written in one settlement every tenth of a second", async () => {
    const { clock, books, end } = await open();
    for (let each = 0; each < 50; each += 1) {
      end();
      await clock.advanceAwaiting(1);
    }
    expect(books.sent).toHaveLength(0);
    await clock.advanceAwaiting(100);
    expect(books.sent).toHaveLength(1);
    expect(books.requests()).toBe(50);
  });

  test("is written at once where all gateways know its hold, with all that waits", async () => {
    const { books, charges, end } = await open();
    charges.push({ keyId: "abcdefABCDEF", limits: { requestsPerMinute: 5 }, requests: 1, tokens: 0 });
    end();
    end({ hold: holdOf("a") });
    expect(books.sent).toMatchObject([{ ended: [{ hold: { seat: "a" } }], charges: [{ requests: 1 }] }]);
    end({ hold: holdOf("b") });
    expect(books.sent.map(({ ended }) => ended.map(({ hold }) => hold.seat))).toEqual([["a"], ["b"]]);
    expect(books.requests()).toBe(3);
  });

  test("is added up by day, key and model", async () => {
    const { clock, books, settlements, end } = await open();
    const took = { keyId: "abcdefABCDEF", promptTokens: 2, completionTokens: 3 };
    for (const row of [{}, { failed: 1 }, { model: null }, { day: "2026-01-02" }, {}]) {
      end({ usage: rowOf({ ...took, ...row }) });
    }
    expect(settlements.spentOf("abcdefABCDEF", "2026-01")).toBe(25);
    expect(settlements.spentOf("abcdefABCDEF", "2026-01-02")).toBe(5);
    await clock.advanceAwaiting(100);
    const [settlement] = books.written;
    expect(settlement?.usage.map(({ requests, failed, durationMs }) => [requests, failed, durationMs])).toEqual([
      [3, 1, 15],
      [1, 0, 5],
      [1, 0, 5],
    ]);
    expect(settlements.spentOf("abcdefABCDEF", "2026-01")).toBe(0);
  });

  test("is sent again every second as it was, until it is written, and counted once", async () => {
    const { clock, books, logged, end } = await open();
    books.state = "unheard";
    end();
    await clock.advanceAwaiting(100);
    end({ usage: rowOf({ model: "meanwhile" }) });
    books.state = "away";
    await clock.advanceAwaiting(2_500);
    books.state = "there";
    await clock.advanceAwaiting(1_000);
    const [first, ...again] = books.sent;
    expect(again.slice(0, 3)).toEqual([first, first, first]);
    expect(books.sent.map(({ sequence }) => sequence - (first?.sequence ?? 0))).toEqual([0, 0, 0, 0, 1]);
    expect(books.requests()).toBe(2);
    expect(logged).toEqual([expect.stringMatching(/^warn: .*kept/), expect.stringMatching(/^info: .*again/)]);
  });

  test("is at once free in this gateway, also while it cannot be written", async () => {
    const { clock, books, freed, settlements, end } = await open();
    books.state = "away";
    const hold = holdOf("a");
    settlements.begin(hold);
    end({ hold });
    expect(freed).toMatchObject([{ hold, ran: true, usedTokens: 5 }]);
    await clock.advanceAwaiting(500);
    books.state = "there";
    await clock.advanceAwaiting(1_000);
    expect(books.written.flatMap(({ ended }) => ended)).toMatchObject([{ hold, ran: true, usedTokens: 5 }]);
  });

  test("follows in order once all that was sent before is written, with what this gateway granted by itself", async () => {
    const { clock, books, charges, settlements, end } = await open();
    books.state = "away";
    end({ hold: holdOf("first") });
    end({ hold: holdOf("second") });
    await clock.advanceAwaiting(10);
    expect(settlements.isAway).toBe(true);
    end({ hold: holdOf("third") });
    charges.push({ keyId: "abcdefABCDEF", limits: { requestsPerMinute: 5 }, requests: 1, tokens: 0 });
    expect(books.sent).toHaveLength(2);
    books.state = "there";
    await clock.advanceAwaiting(1_000);
    expect(settlements.isAway).toBe(false);
    expect(books.written.map(({ ended }) => ended.map(({ hold }) => hold.seat))).toEqual([
      ["first"],
      ["second"],
      ["third"],
    ]);
    expect(books.written.map(({ charges: { length } }) => length)).toEqual([0, 0, 1]);
    const [first, , last] = books.written;
    expect([first?.acknowledged, last?.acknowledged]).toEqual([(first?.sequence ?? 0) - 1, (last?.sequence ?? 0) - 1]);
  });

  test("is not written of what only this gateway held", async () => {
    const { clock, books, freed, settlements, end } = await open();
    const hold = holdOf("a", { kept: "here" });
    settlements.begin(hold);
    await clock.advanceAwaiting(5_000);
    end({ hold });
    await clock.advanceAwaiting(1_000);
    expect(freed).toHaveLength(1);
    expect(books.sent.flatMap(({ ended, renewed }) => [...ended, ...renewed])).toEqual([]);
    expect(books.requests()).toBe(1);
  });

  test("frees no seat any more when it has lapsed long ago", async () => {
    const { clock, books, end } = await open();
    books.state = "away";
    end({ hold: holdOf("first") });
    await clock.advanceAwaiting(1_000);
    end({ hold: holdOf("meanwhile") });
    await clock.advanceAwaiting(61_000);
    end({ hold: holdOf("last") });
    books.state = "there";
    await clock.advanceAwaiting(2_000);
    expect(books.written.flatMap(({ ended }) => ended.map(({ hold }) => hold.seat))).toEqual(["last"]);
    expect(books.requests()).toBe(3);
  });

  test("a hold of which nobody knows is freed, and gives nothing back", async () => {
    const { clock, books, freed, settlements } = await open();
    settlements.release(holdOf("unheard", { tokens: 0 }));
    await clock.advanceAwaiting(0);
    expect(books.written[0]?.ended).toMatchObject([{ hold: { seat: "unheard" }, ran: true, usedTokens: 0 }]);
    expect(freed).toEqual([]);
  });

  test("is bounded while it cannot be written, and what finds no place is told", async () => {
    const { clock, books, logged, end } = await open({ rowsMax: 10 });
    books.state = "away";
    end();
    await clock.advanceAwaiting(100);
    for (let model = 0; model < 15; model += 1) end({ usage: rowOf({ model: `model-${model}` }) });
    end({ usage: rowOf({ model: "model-0" }) });
    await clock.advanceAwaiting(5_000);
    expect(logged.filter((line) => line.startsWith("error"))).toEqual([
      expect.stringMatching(/5 requests were not counted.*unwrittenRowsMax/),
    ]);
    books.state = "there";
    await clock.advanceAwaiting(5_000);
    expect(books.requests()).toBe(12);
    expect(logged.filter((line) => line.startsWith("error"))).toHaveLength(1);
  });
});

describe("a gateway's heartbeat", () => {
  test("goes out every five seconds, renews the seats of what is under way, and says how many gateways there are", async () => {
    const { clock, books, settlements, end } = await open();
    expect(settlements.gateways).toBe(1);
    const [stays, leaves] = [holdOf("stays"), holdOf("leaves")];
    for (const hold of [stays, leaves, holdOf("no seat", { limits: { requestsPerMinute: 5 } })])
      settlements.begin(hold);
    end({ hold: leaves });
    books.gateways = 3;
    await clock.advanceAwaiting(3_000);
    expect(books.sent.flatMap(({ renewed }) => renewed)).toEqual([]);
    await clock.advanceAwaiting(10_000);
    expect(books.sent.flatMap(({ renewed }) => renewed)).toEqual([stays, stays]);
    expect(settlements.gateways).toBe(3);
  });

  test("that is not heard is no reason to wait at the end", async () => {
    const { clock, books, settlements } = await open();
    books.state = "away";
    await clock.advanceAwaiting(6_000);
    expect(books.sent.length).toBeGreaterThan(1);
    await settlements.stop(new AbortController().signal);
    expect(clock.timersWaiting).toBe(0);
  });
});

describe("a gateway that stops", () => {
  test("writes what there is at once, and leaves nothing behind", async () => {
    const { clock, books, settlements, end } = await open();
    end();
    await clock.advanceAwaiting(0);
    end();
    await settlements.stop(new AbortController().signal);
    expect(books.requests()).toBe(2);
    expect(clock.timersWaiting).toBe(0);
  });

  test("tries until its deadline, and says what it could not write", async () => {
    const { clock, books, logged, settlements, end } = await open();
    books.state = "away";
    end();
    await clock.advanceAwaiting(0);
    end();
    const deadline = new AbortController();
    const stopped = settlements.stop(deadline.signal);
    await clock.advanceAwaiting(2_000);
    deadline.abort();
    await stopped;
    expect(logged.at(-1)).toMatch(/^error: 2 requests were not counted/);
    expect(clock.timersWaiting).toBe(0);
  });

  test("has written all when a flush resolves", async () => {
    const { clock, books, settlements, end } = await open();
    books.state = "away";
    end();
    const flushed = settlements.flush();
    end();
    await clock.advanceAwaiting(500);
    books.state = "there";
    await clock.advanceAwaiting(500);
    await flushed;
    expect(books.requests()).toBe(2);
    await settlements.flush();
  });
});
