import { bookOf, heldIn } from "../../../harness/book-of-a-test.ts";
import { setImmediate as turnEnd } from "node:timers/promises";
import { freeRate } from "#shared/prices/cost.ts";
import type { KeyLimits } from "#shared/records/key-record.ts";
import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { noUsage, type UsageRow } from "#shared/usage/usage.ts";
import type {
  Charge,
  Growth,
  Reservation,
  LimitsBook,
  Settled,
  Settlement,
} from "../../../../services/gateway/limits/limits.ts";
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
    return { gateways: this.gateways, grown: settlement.growing.map(({ reservation }) => reservation), admissions: [] };
  }

  requests(): number {
    return this.written.flatMap(({ usage }) => usage).reduce((sum, { requests }) => sum + requests, 0);
  }
}

const rowOf = (row: Partial<UsageRow> = {}): UsageRow => ({
  ...noUsage,
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

const reservationOf = (
  seat: string,
  { limits = { concurrency: 5 }, ...reservation }: Partial<Reservation> & { readonly limits?: KeyLimits } = {},
): Reservation => ({
  held: [heldIn(bookOf(limits), { tokens: 10 })],
  seat,
  rate: freeRate,
  kept: "shared",
  ...reservation,
});

/** Its first heartbeat has gone out, and it is quiet. */
async function open(options: { rowsMax?: number; keepsRunning?: boolean } = {}) {
  const clock = new TurnableClock();
  const book = new HeldBook();
  const charges: Charge[] = [];
  const freed: Settled[] = [];
  const logged: string[] = [];
  const log = (level: string) => (_: unknown, text?: string) => void logged.push(`${level}: ${text ?? String(_)}`);
  const local = {
    gateways: 1,
    settle: (settled: Settled) => void freed.push(settled),
    takeCharges: () => charges.splice(0),
    grow: ({ reservation }: Growth) => reservation,
    adopt: () => undefined,
  };
  const settlements = new Settlements({
    book,
    local,
    gateway: "a-gateway",
    clock,
    log: { info: log("info"), warn: log("warn"), error: log("error") },
    ...options,
  });
  await clock.advanceAwaiting(1_000);
  book.sent.length = 0;
  book.written.length = 0;
  const end = (ended: Partial<Parameters<Settlements["end"]>[0]> = {}) =>
    settlements.end({ ran: true, usedTokens: 5, usage: rowOf(), ...ended });
  return { clock, book, charges, freed, local, logged, settlements, end };
}

test("the end of a request without an answer waits up to a tenth of a second, and is booked together with others", async () => {
  const { clock, book, end } = await open();
  for (let each = 0; each < 50; each += 1) {
    end({ ran: false });
    await clock.advanceAwaiting(1);
  }
  expect(book.sent).toHaveLength(0);
  await clock.advanceAwaiting(100);
  expect(book.sent).toHaveLength(1);
  expect(book.requests()).toBe(50);
});

test("the end of a request is booked with its turn of the event loop if it had an answer or a reservation, with everything that waits", async () => {
  const { book, charges, end } = await open();
  charges.push({ book: bookOf({ requestsPerMinute: 5 }), requests: 1, tokens: 0 });
  end();
  end({ reservation: reservationOf("a") });
  end({ reservation: reservationOf("b") });
  await turnEnd();
  expect(book.sent).toMatchObject([{ ended: [{ reservation: { seat: "a" } }, {}], charges: [{ requests: 1 }] }]);
  end({ reservation: reservationOf("c") });
  await turnEnd();
  expect(book.sent.map(({ ended }) => ended.map(({ reservation }) => reservation.seat))).toEqual([["a", "b"], ["c"]]);
  expect(book.requests()).toBe(4);
});

test("the end of a request is added up by day, key and model", async () => {
  const { clock, book, settlements, end } = await open();
  const took = { keyId: "abcdefABCDEF", promptTokens: 2, completionTokens: 3 };
  for (const row of [{}, { failed: 1 }, { model: null }, { day: "2026-01-02" }, {}]) {
    end({ usage: rowOf({ ...took, ...row }) });
  }
  expect(settlements.spentOf("abcdefABCDEF", "2026-01", "tokens")).toBe(25);
  expect(settlements.spentOf("abcdefABCDEF", "2026-01-02", "tokens")).toBe(5);
  await clock.advanceAwaiting(100);
  const [settlement] = book.written;
  expect(settlement?.usage.map(({ requests, failed, durationMs }) => [requests, failed, durationMs])).toEqual([
    [3, 1, 15],
    [1, 0, 5],
    [1, 0, 5],
  ]);
  expect(settlements.spentOf("abcdefABCDEF", "2026-01", "tokens")).toBe(0);
});

test("the end of a request is sent again every second, unchanged, until it is booked, and counts once", async () => {
  const { clock, book, logged, end } = await open();
  book.state = "unheard";
  end();
  await clock.advanceAwaiting(100);
  end({ usage: rowOf({ model: "meanwhile" }) });
  book.state = "away";
  await clock.advanceAwaiting(2_500);
  book.state = "there";
  await clock.advanceAwaiting(1_000);
  const [first, ...again] = book.sent;
  expect(again.slice(0, 3)).toEqual([first, first, first]);
  expect(book.sent.map(({ sequence }) => sequence - (first?.sequence ?? 0))).toEqual([0, 0, 0, 0, 1]);
  expect(book.requests()).toBe(2);
  expect(logged).toEqual([expect.stringMatching(/^warn: .*kept/), expect.stringMatching(/^info: .*again/)]);
});

test("the end of a request frees its reservation in this gateway at once, also while it cannot be booked", async () => {
  const { clock, book, freed, settlements, end } = await open();
  book.state = "away";
  const reservation = reservationOf("a");
  settlements.begin(reservation);
  end({ reservation });
  expect(freed).toMatchObject([{ reservation, ran: true, usedTokens: 5, usedMoney: 0 }]);
  await clock.advanceAwaiting(500);
  book.state = "there";
  await clock.advanceAwaiting(1_000);
  expect(book.written.flatMap(({ ended }) => ended)).toMatchObject([
    { reservation, ran: true, usedTokens: 5, usedMoney: 0 },
  ]);
});

test("the end of a request is booked after everything that was sent before it, with the charges of this gateway's own grants", async () => {
  const { clock, book, charges, settlements, end } = await open();
  book.state = "away";
  end({ reservation: reservationOf("first") });
  void settlements.flush();
  end({ reservation: reservationOf("second") });
  void settlements.flush();
  await clock.advanceAwaiting(10);
  expect(settlements.isAway).toBe(true);
  end({ reservation: reservationOf("third") });
  charges.push({ book: bookOf({ requestsPerMinute: 5 }), requests: 1, tokens: 0 });
  expect(book.sent).toHaveLength(2);
  book.state = "there";
  await clock.advanceAwaiting(1_000);
  expect(settlements.isAway).toBe(false);
  expect(book.written.map(({ ended }) => ended.map(({ reservation }) => reservation.seat))).toEqual([
    ["first"],
    ["second"],
    ["third"],
  ]);
  expect(book.written.map(({ charges: { length } }) => length)).toEqual([0, 0, 1]);
  const [first, , last] = book.written;
  expect([first?.acknowledged, last?.acknowledged]).toEqual([(first?.sequence ?? 0) - 1, (last?.sequence ?? 0) - 1]);
});

test("the end of a request does not settle a reservation that only this gateway knows", async () => {
  const { clock, book, freed, settlements, end } = await open();
  const reservation = reservationOf("a", { kept: "here" });
  settlements.begin(reservation);
  await clock.advanceAwaiting(5_000);
  end({ reservation });
  await clock.advanceAwaiting(1_000);
  expect(freed).toHaveLength(1);
  expect(book.sent.flatMap(({ ended, renewed }) => [...ended, ...renewed])).toEqual([]);
  expect(book.requests()).toBe(1);
});

test("the end of a request frees no seat that has expired long ago", async () => {
  const { clock, book, end } = await open();
  book.state = "away";
  end({ reservation: reservationOf("first") });
  await clock.advanceAwaiting(1_000);
  end({ reservation: reservationOf("meanwhile") });
  await clock.advanceAwaiting(61_000);
  end({ reservation: reservationOf("last") });
  book.state = "there";
  await clock.advanceAwaiting(2_000);
  expect(book.written.flatMap(({ ended }) => ended.map(({ reservation }) => reservation.seat))).toEqual(["last"]);
  expect(book.requests()).toBe(3);
});

test("the end of a request is kept up to a bound while it cannot be booked, and requests beyond it are reported", async () => {
  const { clock, book, logged, end } = await open({ rowsMax: 10 });
  book.state = "away";
  end();
  await clock.advanceAwaiting(100);
  for (let model = 0; model < 15; model += 1) end({ usage: rowOf({ model: `model-${model}` }) });
  end({ usage: rowOf({ model: "model-0" }) });
  await clock.advanceAwaiting(5_000);
  expect(logged.filter((line) => line.startsWith("error"))).toEqual([
    expect.stringMatching(/5 requests were not counted.*unwrittenRowsMax/),
  ]);
  book.state = "there";
  await clock.advanceAwaiting(5_000);
  expect(book.requests()).toBe(12);
  expect(logged.filter((line) => line.startsWith("error"))).toHaveLength(1);
});

test("end users beyond those whose sums may wait have their requests counted without them, which is logged once a minute", async () => {
  const { clock, book, logged, end } = await open({ rowsMax: 10 });
  const endAll = () => {
    for (let user = 0; user < 12; user += 1) end({ usage: rowOf({ endUser: `abcdefABCDEF:${user}` }) });
  };
  for (const ms of [100, 5_000, 5_000, 60_000]) {
    endAll();
    await clock.advanceAwaiting(ms);
  }
  expect(book.requests()).toBe(48 + 40);
  expect(logged.filter((line) => line.includes("unwrittenRowsMax"))).toEqual([
    expect.stringMatching(/4 requests are counted for no machine or no end user: unwrittenRowsMax/),
    expect.stringMatching(/4 requests/),
  ]);
});

test("a gateway's heartbeat goes out every five seconds, renews the seats of what is under way, and says how many gateways there are", async () => {
  const { clock, book, local, settlements, end } = await open();
  expect(local.gateways).toBe(1);

  const [stays, leaves] = [reservationOf("stays"), reservationOf("leaves")];
  for (const reservation of [stays, leaves, reservationOf("no seat", { limits: { requestsPerMinute: 5 } })])
    settlements.begin(reservation);
  end({ reservation: leaves });
  book.gateways = 3;
  await clock.advanceAwaiting(3_000);
  expect(book.sent.flatMap(({ renewed }) => renewed)).toEqual([]);
  await clock.advanceAwaiting(10_000);
  expect(book.sent.flatMap(({ renewed }) => renewed)).toEqual([stays, stays]);
  expect(local.gateways).toBe(3);
});

test("a gateway's heartbeat that is not heard is no reason to wait at the end", async () => {
  const { clock, book, settlements } = await open();
  book.state = "away";
  await clock.advanceAwaiting(6_000);
  expect(book.sent.length).toBeGreaterThan(1);
  await settlements.stop(new AbortController().signal);
  expect(clock.timersWaiting).toBe(0);
});

test("a gateway that stops tries until its deadline, and says what it could not write", async () => {
  const { clock, book, logged, settlements, end } = await open();
  book.state = "away";
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

test("a gateway that stops has written all when a flush resolves", async () => {
  const { clock, book, settlements, end } = await open();
  book.state = "away";
  end();
  const flushed = settlements.flush();
  end();
  await clock.advanceAwaiting(500);
  book.state = "there";
  await clock.advanceAwaiting(500);
  await flushed;
  expect(book.requests()).toBe(2);
  await settlements.flush();
});

const running = (completionTokens: number) => ({ books: [], usedSoFar: () => rowOf({ failed: 1, completionTokens }) });

test("requests under way are told by their numbers, without those that no machine has taken", async () => {
  const { clock, book, settlements } = await open();
  for (const each of [running(10), { books: [], usedSoFar: () => undefined }, running(20)]) settlements.follow(each);
  await clock.advanceAwaiting(100);
  expect(book.sent).toHaveLength(1);
  expect(book.sent[0]?.running).toMatchObject([
    { id: 1, usage: rowOf({ failed: 1, completionTokens: 10 }) },
    { id: 2, usage: rowOf({ failed: 1, completionTokens: 20 }) },
  ]);
});

test("requests under way are over in the settlement that books their end", async () => {
  const { clock, book, end, settlements } = await open();
  const request = running(10);
  settlements.follow(request);
  await clock.advanceAwaiting(100);
  end({ running: request, usage: rowOf({ completionTokens: 12 }) });
  await clock.advanceAwaiting(100);
  expect(book.sent.at(-1)).toMatchObject({ running: [], over: [1], usage: [{ completionTokens: 12 }] });
  await clock.advanceAwaiting(2_000);
  expect(book.sent).toHaveLength(2);
});

test("requests under way are told in turns where they are many", async () => {
  const { clock, book, settlements } = await open();
  for (let each = 0; each < 750; each += 1) settlements.follow(running(each));
  await clock.advanceAwaiting(400);
  const told = book.sent.map((each) => each.running.map(({ usage }) => usage.completionTokens));
  expect(told.map(({ length }) => length)).toEqual([200, 200, 200, 200]);
  expect(new Set(told.flat()).size).toBe(750);
});

test("requests under way are told again after an outage of the book, in their latest state", async () => {
  const { clock, book, settlements } = await open();
  settlements.follow(running(10));
  book.state = "away";
  await clock.advanceAwaiting(3_000);
  book.state = "there";
  await clock.advanceAwaiting(3_000);
  expect(book.written.at(-1)?.running).toMatchObject([{ id: 1, usage: rowOf({ failed: 1, completionTokens: 10 }) }]);
});
