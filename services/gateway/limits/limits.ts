import { freeRate, type MoneyRate } from "#shared/prices/cost.ts";
import type { Book } from "#shared/records/book.ts";
import type { UsageRow } from "#shared/usage/usage.ts";
import { type Amounts, noAmounts, type Spent } from "./budgets.ts";

/** A request's demand on the limits of its books, judged before the request may run. */
export interface Demand {
  /** A refusal names the first of them that is full. */
  readonly books: readonly Book[];
  /** The name of the request's seat: a fresh token, or `noSeat`. */
  readonly seat: string;
  /** The tokens that the request is expected to use: its prompt, and the longest answer that it allows. */
  readonly tokens: number;
  /** The tokens of the prompt alone, which may be longer than what is left by `growthTokens`. Absent for a count of tokens. */
  readonly promptTokens?: number;
  /** The money that it may take; `freeRate` for a model without a price. */
  readonly rate: MoneyRate;
}

/** In place of a seat: a count of tokens takes a request of the limit per minute, and nothing of the other limits. */
export const noSeat = "";

/** The demand of a count of tokens. */
export const oneRequest = { seat: noSeat, tokens: 0, rate: freeRate } as const;

/** The rest of one limit, and the time until the whole limit is available again. */
export interface Allowance {
  readonly limit: number;
  readonly remaining: number;
  readonly resetMs: number;
}

/** The rate-limit status of a request: of each limit per minute, the tightest of its books, for the headers of an answer. */
export interface LimitStatus {
  readonly requests?: Allowance | undefined;
  readonly tokens?: Allowance | undefined;
}

/** The part of one book's limits that an admitted request holds. */
export interface Held {
  readonly book: Book;
  /** Tokens reserved of the limit per minute. */
  readonly tokens: number;
  /** Reserved of the budgets. */
  readonly reserved: Amounts;
}

/** The part of its books' limits that an admitted request holds until it is settled. */
export interface Reservation {
  /** Its part of each book, in the order of the demand. */
  readonly held: readonly Held[];
  readonly seat: string;
  readonly rate: MoneyRate;
  /** `here` if only this gateway knows of the reservation, `shared` if the book of all gateways has it. */
  readonly kept: "here" | "shared";
}

/** A request under way that has used up its reservation: its prompt and the answer so far have `usedTokens` tokens. */
export interface Growth {
  readonly reservation: Reservation;
  readonly promptTokens: number;
  readonly usedTokens: number;
}

/** The end of an admitted request: its reservation, and what it really used. */
export interface Settled {
  readonly reservation: Reservation;
  /**
   * True if a machine took the request. Otherwise its books get back the whole reservation, and the request of the limit
   * per minute.
   */
  readonly ran: boolean;
  readonly usedTokens: number;
  readonly usedMoney: number;
}

/**
 * The limit that refuses a request. `budget`: the budget of tokens is spent, and nothing helps before its period ends.
 * `budget_reserved`: requests under way have reserved the rest of the budget, and some of them will not use it all. `spend` and
 * `spend_reserved` say the same of money. `prompt`: the prompt alone is far longer than the rest of a budget, or than the tokens
 * of a minute.
 */
export const refusals = [
  "requests",
  "tokens",
  "concurrency",
  "budget",
  "budget_reserved",
  "spend",
  "spend_reserved",
  "prompt",
] as const;
export type Refusal = (typeof refusals)[number];

export type Admission = {
  readonly limitStatus: LimitStatus;
  /** For each book: what is used of its budgets in this period, without reservations. */
  readonly spent?: readonly Partial<Amounts>[] | undefined;
} & (
  | { readonly outcome: "admitted"; readonly reservation: Reservation }
  | {
      readonly outcome: "refused";
      readonly by: Refusal;
      /** The book whose limit it is. `limitStatus` has its rates, where it has any. */
      readonly book: Book;
      readonly waitMs: number;
      /** For a budget that is spent: what is used of it, and the end of its period. */
      readonly period?: { readonly used: number; readonly endsAtMs: number } | undefined;
      /** Set by a gateway's own share while the store is unavailable. The store may admit the next request at once. */
      readonly isProvisional?: true;
    }
);

/** Admits requests. One decision covers all limits of all books: a request takes from all of them or from none. */
export interface Limits {
  admit(demand: Demand): Promise<Admission>;
  /** Takes a seat for an answer that an earlier request was admitted for. It is counted, and nothing refuses it. */
  occupy(demand: Omit<Demand, "tokens" | "promptTokens">): Reservation;
  /** Returns the rate-limit status of books. Charges nothing. */
  limitStatus(books: readonly Book[]): Promise<LimitStatus>;
}

/** Use of a book's limits per minute that a gateway granted by itself while the store was unavailable. */
export interface Charge {
  readonly book: Book;
  /** Negative if the gateway gave something back. */
  readonly requests: number;
  readonly tokens: number;
}

/** An answer that may be resumed at any gateway: its job, and the seat of the request that has it. */
export interface SeatedAnswer {
  readonly job: string;
  readonly seat: string;
  /** The books in which the request has the seat. */
  readonly books: readonly Book[];
  /** True if an earlier request had it. */
  readonly isResumed: boolean;
}

/** The use of a request under way, by its number at its gateway. */
export interface RunningUsage {
  readonly id: number;
  readonly usage: UsageRow;
  /** Its additions to other books than that of its key. */
  readonly spent: readonly Spent[];
  readonly answer?: SeatedAnswer | undefined;
  /** Its record as JSON, the first time that the book is told of it. */
  readonly request?: string | undefined;
}

/** A request under way. */
export interface RunningRequest {
  readonly books: readonly Book[];
  /** Returns what is booked if it is cut off now; undefined while no machine works for it. */
  usedSoFar(): UsageRow | undefined;
  /** Returns its record for that case, as JSON; undefined where none are kept. */
  recordSoFar?(): string | undefined;
  /** Its answer, if that can be resumed. */
  readonly seated?: SeatedAnswer | undefined;
}

/** The end of a request, with its usage and its record. */
export interface SettledRequest extends Omit<Settled, "reservation" | "usedMoney"> {
  /** Absent for a request that was refused before it held anything, or whose books have no limits. */
  readonly reservation?: Reservation | undefined;
  readonly usage: UsageRow;
  /** The record of the request as JSON, if it gets one. */
  readonly request?: string | undefined;
  /** The request itself, if it was given to `follow`. */
  readonly running?: RunningRequest | undefined;
}

/** Everything that one gateway books in one step. Its ends, charges and usage are booked once, however often it is sent. */
export interface Settlement {
  /** The token of this boot of the gateway. Another boot numbers its settlements anew. */
  readonly gateway: string;
  /** Counts up by one with each settlement of this gateway. */
  readonly sequence: number;
  /** The last settlement that the gateway knows to be booked. */
  readonly acknowledged: number;
  readonly ended: readonly Settled[];
  readonly charges: readonly Charge[];
  /** Reservations of requests under way, whose seats are to be renewed. */
  readonly renewed: readonly Reservation[];
  /** Reservations that are to grow. A settlement that is sent again has none. */
  readonly growing: readonly Growth[];
  /** Requests to be admitted, judged after all else. A settlement that is sent again has none. */
  readonly demands: readonly Demand[];
  readonly usage: readonly UsageRow[];
  /** Additions of the usage to other books than those of keys. */
  readonly spent: readonly Spent[];
  /** Records of ended requests, each as JSON. */
  readonly requests: readonly string[];
  /** The use so far of requests under way. The book keeps the latest of each, and books it if this gateway is gone. */
  readonly running: readonly RunningUsage[];
  /** The ids of those of them that ended: `usage` has all of their use. */
  readonly over: readonly number[];
}

/** A settlement that books nothing. */
export const nothingToSettle = {
  usage: [],
  spent: [],
  ended: [],
  charges: [],
  requests: [],
  running: [],
  over: [],
} as const;

/**
 * The book of limits: what is used of the limits of all books, and the usage records of their requests. Redis has it for all
 * gateways together. The only gateway of a state folder has it in memory and in SQLite.
 */
export interface LimitsBook extends Pick<Limits, "limitStatus"> {
  /**
   * Books a settlement, in the order of their numbers. Fails with a Fault `backend_unavailable`; the same settlement may
   * then be sent again.
   */
  settle(settlement: Settlement): Promise<Settling>;
}

export interface Settling {
  /** The number of gateways that settled lately, this one included. */
  readonly gateways: number;
  /** The reservations that were to grow, with what their limits had left. */
  readonly grown: readonly Reservation[];
  /** The decision on each demand. */
  readonly admissions: readonly Admission[];
}

/** A reservation of nothing but its seats. */
export function emptyReservation(
  { books, seat, rate }: Omit<Demand, "tokens" | "promptTokens">,
  kept: Reservation["kept"],
): Reservation {
  return { held: books.map((book) => ({ book, tokens: 0, reserved: noAmounts })), seat, rate, kept };
}

/** A seat that is not renewed for this long is free again. This frees the seats of a gateway that was killed. */
export const seatLivesMs = 20_000;
