import type { Book } from "#shared/records/book.ts";
import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { gatewayIsThereForMs } from "#shared/records/site-gateways.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { RedisConnection, RedisScript } from "#shared/process/redis-connection.ts";
import { keptRequestsDefault, type KeptRequests } from "#shared/requests/request-records.ts";
import { madeOf, usageInRedis, type UsageRow } from "#shared/usage/usage.ts";
import {
  type Amounts,
  amountsOf,
  type BudgetUnit,
  budgetPeriodAt,
  endOfPeriod,
  judgingBudgets,
  noAmounts,
  type Spent,
  spentByKey,
} from "./budgets.ts";
import {
  drainedUnits,
  judgingLimits,
  limitStatusOf,
  neededOf,
  needsSeat,
  refusedStatus,
  spentPeriod,
  tightest,
  waitMsOf,
  wantedOf,
} from "./judge-demand.ts";
import {
  seatLivesMs,
  type Admission,
  type Charge,
  type Demand,
  type Growth,
  type Held,
  type Reservation,
  type LimitsBook,
  type LimitStatus,
  type Refusal,
  type RunningUsage,
  type Settled,
  type Settlement,
} from "./limits.ts";
import { settlementLua } from "./settlement-lua.ts";

/** An empty key, to which the connection adds its prefix. */
const prefixOnly = "";

/**
 * The reply to a settlement: the number of gateways, what each reservation that grows got of each book (tokens of a minute,
 * and of each budget), and the decision on each demand. `at` counts books from one.
 */
type SettleReply = readonly [
  gateways: number,
  grants: readonly (readonly (readonly number[])[])[],
  replies: readonly AdmitReply[],
];
/** Of each book: the levels of requests and of tokens, and of each of its budgets what is spent and what is reserved. */
type AdmitReply = readonly [by: Refusal | "", at: number, ...books: readonly (string | number)[]];
const limitStatusReply = z.tuple([z.tuple([z.coerce.number(), z.coerce.number()])], z.array(z.string().nullable()));

/** Returns the Redis key that counts what a book used in a period. */
export function spentAt(bookId: string, period: string, unit: BudgetUnit = "tokens"): string {
  return `${unit === "tokens" ? "spent" : "spent-money"}:${bookId}:${period}`;
}

interface BookOptions {
  readonly clock: Pick<Clock, "wall">;
  readonly kept?: KeptRequests;
  readonly seatLivesMs?: number;
  readonly isThereForMs?: number;
}

/** A gateway is noted this often within the time for which it counts as present. Absent gateways are looked for then. */
const notedTimes = 15;
const notNoted = { gateway: "", wallMs: -Infinity };

/** The book of all gateways together, exact at any moment. */
export class RedisLimitsBook implements LimitsBook {
  readonly #redis: RedisConnection;
  readonly #clock: Pick<Clock, "wall">;
  readonly #notedForMs: number;
  readonly #settle: RedisScript<SettleReply>;
  /** The latest gateway that was noted as present. A Redis that did not answer may have lost the note. */
  #noted = notNoted;

  constructor(redis: RedisConnection, options: BookOptions) {
    const { clock, kept = keptRequestsDefault, isThereForMs = gatewayIsThereForMs } = options;
    const terms = { seatLivesMs, ...options, isThereForMs, requestsMax: kept.max, requestsKeptMs: kept.ms };
    this.#redis = redis;
    this.#clock = clock;
    this.#notedForMs = isThereForMs / notedTimes;
    this.#settle = redis.script(settlementLua(terms), 1);
  }

  async limitStatus(books: readonly Book[]): Promise<LimitStatus> {
    const replies = await this.#redis.pipeline("tell how a key stands", (batch) =>
      books.reduce(
        (each, { id }) => each.hmget(`limits:${id}`, "requests", "requestsAt", "tokens", "tokensAt"),
        batch.time(),
      ),
    );
    const [[seconds, microseconds], ...all] = limitStatusReply.parse(replies);
    const nowMs = seconds * 1_000 + microseconds / 1_000;
    const statuses = books.map(({ limits }, at) => {
      const [requests = 0, requestsAtMs = 0, tokens = 0, tokensAtMs = 0] = all[at]?.map(Number) ?? [];
      const { requestsPerMinute: requestsLimit = 1, tokensPerMinute: tokensLimit = 1 } = limits;
      return limitStatusOf(limits, {
        requests: Math.min(drainedUnits(requests, requestsLimit, nowMs - requestsAtMs), requestsLimit),
        tokens: drainedUnits(tokens, tokensLimit, nowMs - tokensAtMs),
      });
    });
    return tightest(statuses);
  }

  async settle(settlement: Settlement) {
    const { gateway, sequence, acknowledged, ended, charges, growing, demands, usage, spent, running, over } =
      settlement;
    const wallMs = this.#clock.wall();
    const notes = this.#noted.gateway !== gateway || Math.abs(wallMs - this.#noted.wallMs) >= this.#notedForMs;
    if (notes) this.#noted = { gateway, wallMs };
    const text = JSON.stringify({
      gateway,
      sequence,
      acknowledged,
      notes,
      changes: some([...ended.flatMap(changesOfEnd), ...charges.map(changeOf)]),
      renewed: some(settlement.renewed.flatMap((each) => renewalsOf(each, wallMs))),
      growing: some(growing.map((each) => growthOf(each, wallMs))),
      demands: some(demands.map((each) => demandOf(each, wallMs))),
      ...(usage.length + spent.length > 0 && usedOf(usage, spent)),
      running: some(running.map(toldOf)),
      over: some(over),
    });
    const purpose = demands.length > 0 ? "admit requests" : "write down what has ended";
    const settling = this.#settle(purpose, prefixOnly, text, ...settlement.requests);
    const [gateways, grants, replies] = await settling.catch((error: unknown) => {
      this.#noted = notNoted;
      throw error;
    });
    if (gateways === 0) {
      const [message, internal] = ["Usage cannot be booked just now.", "an earlier settlement is missing"];
      throw new Fault("backend_unavailable", { message, internal });
    }
    const grown = growing.map(({ reservation }, at): Reservation => {
      const held = reservation.held.map((each, of): Held => {
        const [tokens = 0, ...more] = grants[at]?.[of] ?? [];
        const reserved = { ...each.reserved };
        for (const [by, { unit }] of judgingBudgets(each.book.limits, reservation.rate).entries())
          reserved[unit] += more[by] ?? 0;
        return { ...each, tokens: each.tokens + tokens, reserved };
      });
      return { ...reservation, held };
    });
    return { gateways, grown, admissions: replies.map((each, at) => admissionOf(each, demands[at] as Demand, wallMs)) };
  }
}

function admissionOf([by, refusedAt, ...found]: AdmitReply, demand: Demand, wallMs: number): Admission {
  const { books, seat, tokens, rate } = demand;
  let at = 0;
  const next = (): number => Number(found[(at += 1) - 1]);
  const all = books.map((book) => {
    const limits = judgingLimits(demand, book.limits);
    const levels = { requests: next(), tokens: next() };
    const [used, reserved] = [
      {} as Partial<Record<BudgetUnit, number>>,
      { ...noAmounts } as Record<BudgetUnit, number>,
    ];
    for (const { unit } of judgingBudgets(limits, rate)) [used[unit], reserved[unit]] = [next(), next()];
    return { book, limits, levels, used, reserved };
  });
  const statuses = all.map(({ limits, levels }) => limitStatusOf(limits, levels));
  const spent = all.map(({ used }) => used);
  const refused = all[refusedAt - 1];
  if (by !== "" && refused !== undefined) {
    const { book, limits, levels, used } = refused;
    const waitMs = waitMsOf({ by, tokens, limits, levels, wallMs });
    const period = spentPeriod(by, limits, { spent: used, wallMs });
    return { outcome: "refused", by, book, waitMs, period, limitStatus: refusedStatus(statuses, refusedAt - 1), spent };
  }
  const held = all.map(({ book, limits, reserved }): Held => {
    return { book, tokens: Math.min(tokens, limits.tokensPerMinute ?? 0), reserved };
  });
  const reservation: Reservation = { held, seat, rate, kept: "shared" };
  return { outcome: "admitted", reservation, limitStatus: tightest(statuses), spent };
}

/** Returns a list, unless it is empty. */
function some<Each>(list: readonly Each[]): readonly Each[] | undefined {
  return list.length === 0 ? undefined : list;
}

function demandOf(demand: Demand, wallMs: number) {
  const { books, seat, tokens, rate } = demand;
  const [needed, wanted] = [neededOf(demand), amountsOf(tokens, demand)];
  const judged = books.map(({ id, limits: all }) => {
    const limits = judgingLimits(demand, all);
    const budgets = budgetsIn({ id, limits }, rate, [needed, wanted], wallMs);
    return [...ratesIn({ id, limits }), limits.concurrency ?? false, budgets];
  });
  return { seat, tokens, needed: needed.tokens, books: judged };
}

/** Returns the beginning of a list for the script, in which what is absent is false. */
function ratesIn({ id, limits: { requestsPerMinute, tokensPerMinute } }: Pick<Book, "id" | "limits">) {
  return [id, requestsPerMinute ?? false, tokensPerMinute ?? false] as const;
}

/** Returns the budgets of a book that judge a request, each with the amount that it has or needs and the one that it wants. */
function budgetsIn({ id, limits }: Pick<Book, "id" | "limits">, rate: Demand["rate"], of: Amounts[], wallMs: number) {
  const all = judgingBudgets(limits, rate).map(({ unit, limit, per }) => {
    return [unit, limit, spentAt(id, budgetPeriodAt(per, wallMs).name, unit), ...of.map((each) => each[unit])];
  });
  return all.length > 0 && all;
}

/** Returns the change of each book's buckets, and the seat to free. A negative number is given back. */
function changesOfEnd({ reservation: { held, seat }, ran, usedTokens }: Settled) {
  return held.map(({ book, tokens, reserved }) => {
    const change = changeOf({ book, requests: ran ? 0 : -1, tokens: (ran ? usedTokens : 0) - tokens });
    const { budget, spend } = book.limits;
    const its = [budget !== undefined && reserved.tokens, spend !== undefined && reserved.money];
    return needsSeat(book) ? [...change, seat, ...its] : change;
  });
}

function changeOf({ book, requests, tokens }: Charge) {
  return [...ratesIn(book), requests, tokens];
}

function growthOf(growth: Growth, wallMs: number) {
  const { held: parts, seat, rate } = growth.reservation;
  const wanted = wantedOf(growth);
  const books = parts.map(({ book, tokens, reserved: held }) => {
    const budgets = budgetsIn(book, rate, [held, wanted], wallMs);
    return [book.id, book.limits.tokensPerMinute ?? false, tokens, budgets];
  });
  return { seat, books, wanted: wanted.tokens };
}

function renewalsOf({ held: parts, seat, rate }: Reservation, wallMs: number) {
  return parts
    .filter(({ book }) => needsSeat(book))
    .map(({ book, reserved: held }) => {
      return { id: book.id, seat, budgets: budgetsIn(book, rate, [held], wallMs) };
    });
}

/** Returns the use of a request under way, as it is booked if its gateway is gone. */
function toldOf({ id, usage, spent, answer, request }: RunningUsage) {
  const { books, ...seated } = answer ?? { books: [] };
  const moved = answer && { answer: seated, movedUsage: usedOf([{ ...usage, failed: 0 }], []).usage };
  const used = JSON.stringify({ ...usedOf([usage], spent), made: madeOf(usage), ...moved });
  return { id, used, answer: answer && seated, books: some(books.map((book) => book.id)), request };
}

/** Returns what is added to the books for these rows, and for what they add to other books than those of keys. */
function usedOf(usage: readonly UsageRow[], others: readonly Spent[]) {
  const spent = [...usage.flatMap(spentByKey), ...others].map(({ book, unit, period, amount }) => {
    return { at: spentAt(book, period, unit), endsAtMs: endOfPeriod(period), tokens: amount };
  });
  return { spent, usage: usageInRedis(usage) };
}
