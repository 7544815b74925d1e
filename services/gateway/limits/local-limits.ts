import type { Book } from "#shared/records/book.ts";
import type { KeyLimits } from "#shared/records/key-record.ts";
import type { Clock } from "#shared/process/clock.ts";
import {
  budgetPeriodAt,
  chargedLevels,
  emptyLevels,
  growReservation,
  judgeDemand,
  judgingLimits,
  levelsAt,
  limitStatusOf,
  refusedStatus,
  roundingUnits,
  tightest,
  waitMsOf,
  windowMs,
  type BookUse,
  type LimitsUse,
} from "./judge-demand.ts";
import {
  noSeat,
  type Admission,
  type Charge,
  type Demand,
  type Growth,
  type Held,
  type Reservation,
  type Limits,
  type Settled,
  type LimitStatus,
} from "./limits.ts";

interface LocalLimitsOptions {
  readonly clock: Pick<Clock, "now" | "wall">;
  /**
   * Returns the tokens that a book used of its budget in a period, if the store has not reported them. `admit` reads
   * this in the same synchronous step that decides.
   */
  readonly spent: (bookId: string, period: string) => number;
}

/** The interval between two searches for books that can be forgotten. */
const forgetEveryMs = windowMs;

/**
 * Limits in the memory of this gateway. They serve the only gateway that there is, or one gateway's share while the
 * shared store is unavailable. Every decision is one synchronous step.
 */
export class LocalLimits implements Pick<Limits, "limitStatus"> {
  /** The number of gateways that share every limit, as their book last reported it. */
  gateways = 1;
  readonly #options: LocalLimitsOptions;
  readonly #books = new Map<string, LocalBook>();
  /** Books with grants that the book of all gateways has not charged, with the limits of those grants. */
  readonly #uncharged = new Map<string, Book>();
  #forgotAtMs = 0;

  constructor(options: LocalLimitsOptions) {
    this.#options = options;
  }

  /** The number of books in memory. */
  get size(): number {
    return this.#books.size;
  }

  admit(demand: Demand): Admission {
    const { books, seat, tokens } = demand;
    const uses = books.map((book) => this.#useOf(book, demand));
    const verdict = judgeDemand(demand, uses);
    if (verdict.outcome === "refuse") {
      const { by, at } = verdict;
      const { book, share, levels, endsInMs } = uses[at] as UseUntil;
      const waitMs = waitMsOf({ by, tokens, limits: share, levels, budgetEndsInMs: endsInMs });
      const statuses = uses.map((each) => limitStatusOf(each.share, each.levels));
      return { outcome: "refused", by, book, waitMs, limitStatus: refusedStatus(statuses, at) };
    }
    const reservation: Reservation = { held: verdict.held, seat, kept: "here" };
    this.adopt(reservation);
    this.#notCharged(reservation);
    return { outcome: "admitted", reservation, limitStatus: this.#statusOf(uses) };
  }

  /** Grows the reservation of a request under way, by what this gateway's share has left. */
  grow(growth: Growth): Reservation {
    const uses = growth.reservation.held.map(({ book }) => this.#useOf(book, growth.reservation));
    const grown = growReservation(growth, uses);
    this.adopt(grown, "here");
    this.#notCharged(grown);
    return grown;
  }

  async limitStatus(books: readonly Book[]): Promise<LimitStatus> {
    return this.#statusOf(books.map((book) => ({ book, share: shareOf(book.limits, this.gateways) })));
  }

  /**
   * Counts a reservation that the shared store admitted or let grow, so that this gateway does not grant its share a second time.
   * `by` is the one that granted what is new of it.
   */
  adopt(reservation: Reservation, by = reservation.kept): void {
    this.#forgetIdle();
    this.#take(reservation, { by, requests: 1 });
  }

  /** Counts the reservation of an answer that was admitted before, by an earlier request: its seat, and no request of a minute. */
  occupy(reservation: Reservation): void {
    this.#take(reservation, { by: reservation.kept, requests: 0 });
  }

  #take({ held, seat, kept }: Reservation, granted: Omit<Taken, "held" | "seat" | "kept">): void {
    for (const each of held) {
      const { id, limits } = each.book;
      const book = this.#books.getOrInsertComputed(id, () => new LocalBook());
      book.take(this.#options.clock.now(), shareOf(limits, this.gateways), { held: each, seat, kept, ...granted });
    }
  }

  #notCharged({ held }: Reservation): void {
    for (const { book } of held) this.#uncharged.set(book.id, book);
  }

  /** Records the budget use of all gateways, as their store just reported it for each book. The share divides only what is left. */
  learn({ books }: Pick<Demand, "books">, spent: readonly (number | undefined)[]): void {
    for (const [at, { id, limits }] of books.entries()) {
      const used = spent[at];
      if (limits.budget === undefined || used === undefined) continue;
      const period = budgetPeriodAt(limits.budget.per, this.#options.clock.wall());
      this.#books.getOrInsertComputed(id, () => new LocalBook()).learn(period, used);
    }
  }

  /** Settles a request that was admitted or adopted here. A second call for the same reservation changes nothing. */
  settle(settled: Settled): void {
    const { held, kept } = settled.reservation;
    for (const { book } of held) {
      const its = this.#books.get(book.id);
      its?.settle(this.#options.clock.now(), shareOf(book.limits, this.gateways), settled);
      if (kept === "here" && its !== undefined) this.#uncharged.set(book.id, book);
    }
  }

  /**
   * Returns what the book of all gateways must charge beside its own charges, for grants made here. All of it counts as
   * charged from now on.
   */
  takeCharges(): readonly Charge[] {
    const nowMs = this.#options.clock.now();
    const charges = [...this.#uncharged].flatMap(([id, book]): Charge[] => {
      const use = this.#books.get(id)?.takeCharge(nowMs, shareOf(book.limits, this.gateways));
      return use === undefined ? [] : [{ book, ...use }];
    });
    this.#uncharged.clear();
    return charges;
  }

  #statusOf(uses: readonly Pick<BookUse, "book" | "share">[]): LimitStatus {
    return tightest(uses.map(({ book, share }) => limitStatusOf(share, this.#stateOf(book.id, share).levels)));
  }

  #stateOf(id: string, share: KeyLimits): ReturnType<LocalBook["stateAt"]> {
    return (this.#books.get(id) ?? new LocalBook()).stateAt(this.#options.clock.now(), share);
  }

  #useOf(book: Book, { seat }: Pick<Demand, "seat">): UseUntil {
    const { spent, endsInMs } = this.#budgetOf(book);
    const share = judgingLimits({ seat }, shareOf(book.limits, this.gateways, spent));
    return { book, share, ...this.#stateOf(book.id, share), spent, endsInMs };
  }

  #budgetOf({ id, limits }: Book): { readonly spent: number; readonly endsInMs: number } {
    if (limits.budget === undefined) return { spent: 0, endsInMs: 0 };
    const wallMs = this.#options.clock.wall();
    const { name, endsAtMs } = budgetPeriodAt(limits.budget.per, wallMs);
    const learned = this.#books.get(id)?.spentIn(name);
    return { spent: learned ?? this.#options.spent(id, name), endsInMs: endsAtMs - wallMs };
  }

  #forgetIdle(): void {
    const nowMs = this.#options.clock.now();
    if (nowMs - this.#forgotAtMs < forgetEveryMs) return;
    this.#forgotAtMs = nowMs;
    const wallMs = this.#options.clock.wall();
    for (const [id, book] of this.#books) {
      if (!book.isIdleAt(nowMs, wallMs)) continue;
      this.#books.delete(id);
      this.#uncharged.delete(id);
    }
  }
}

type Use = Pick<Charge, "requests" | "tokens">;
/** The use of a book, and the time until the period of its budget ends. */
type UseUntil = BookUse & { readonly endsInMs: number };

/** A reservation's part of a book, the one that granted what is new of it, and the requests of a minute that it takes. */
interface Taken extends Pick<Reservation, "seat" | "kept"> {
  readonly held: Held;
  readonly by: Reservation["kept"];
  readonly requests: number;
}

/**
 * One gateway's record of how much of a book's limits is used. Callers pass the limits each time, because limits change
 * while requests run.
 */
class LocalBook {
  readonly #reservations = new Map<string, Held & Pick<Reservation, "kept">>();
  #reserved = 0;
  #levels = emptyLevels;
  /** The same levels as the book of all gateways knows them: without grants made here while it was unavailable. */
  #charged = emptyLevels;
  /** The limits of the last charge. */
  #limits: KeyLimits = {};
  #budget: { readonly period: string; readonly endsAtMs: number; spent: number } | undefined;

  stateAt(nowMs: number, limits: KeyLimits): Omit<LimitsUse, "spent"> {
    const levels = levelsAt(this.#levels, limits, nowMs);
    return { levels, seatsTaken: this.#reservations.size, reserved: this.#reserved };
  }

  /** Records a reservation, or what it has grown by. */
  take(nowMs: number, limits: KeyLimits, { held, seat, kept, by, requests }: Taken): void {
    const before = this.#reservations.get(seat);
    if (seat !== noSeat) this.#reservations.set(seat, { ...held, kept });
    this.#reserved += held.budgetTokens - (before?.budgetTokens ?? 0);
    const use = { requests: before ? 0 : requests, tokens: held.tokens - (before?.tokens ?? 0) };
    this.#charge(nowMs, limits, use, by);
  }

  /**
   * Returns the charge that is missing in the book of all gateways. It counts as charged from now on. A number is
   * negative where something was given back.
   */
  takeCharge(nowMs: number, limits: KeyLimits): Use {
    const [all, known] = [levelsAt(this.#levels, limits, nowMs), levelsAt(this.#charged, limits, nowMs)];
    this.#charged = all;
    return { requests: all.requests - known.requests, tokens: all.tokens - known.tokens };
  }

  /** Settles a reservation once. A reservation that is unknown here, or already settled, changes nothing. */
  settle(nowMs: number, limits: KeyLimits, { reservation, ran, usedTokens }: Settled): void {
    const held = this.#reservations.get(reservation.seat);
    if (held === undefined) return;
    this.#reservations.delete(reservation.seat);
    if (this.#budget !== undefined) this.#budget.spent += usedTokens;
    this.#reserved -= held.budgetTokens;
    const use = { requests: ran ? 0 : -1, tokens: (ran ? usedTokens : 0) - held.tokens };
    this.#charge(nowMs, limits, use, held.kept);
  }

  /** Records the tokens used in a period up to now. Later settlements here are added to it. */
  learn(period: { readonly name: string; readonly endsAtMs: number }, spent: number): void {
    this.#budget = { period: period.name, endsAtMs: period.endsAtMs, spent };
  }

  spentIn(period: string): number | undefined {
    return this.#budget?.period === period ? this.#budget.spent : undefined;
  }

  /** True if a book without any record would have the same state. */
  isIdleAt(nowMs: number, wallMs: number): boolean {
    const budgetIsOver = this.#budget === undefined || this.#budget.endsAtMs <= wallMs;
    const { requests, tokens } = levelsAt(this.#levels, this.#limits, nowMs);
    return this.#reservations.size === 0 && requests <= roundingUnits && tokens <= roundingUnits && budgetIsOver;
  }

  #charge(nowMs: number, limits: KeyLimits, use: Use, kept: Reservation["kept"]): void {
    this.#limits = limits;
    this.#levels = chargedLevels(levelsAt(this.#levels, limits, nowMs), use, limits);
    if (kept === "shared") this.#charged = chargedLevels(levelsAt(this.#charged, limits, nowMs), use, limits);
  }
}

/**
 * Returns one gateway's share of a book's limits. Only the rest of a budget is divided: all gateways together spent the
 * other part. However many gateways there are, each admits a request now and then.
 */
function shareOf(limits: KeyLimits, gateways: number, spent = 0): KeyLimits {
  if (gateways <= 1) return limits;
  const { requestsPerMinute, tokensPerMinute, concurrency, budget } = limits;
  const divided = (limit: number): number => Math.max(1, Math.floor(limit / gateways));
  const left = budget === undefined ? 0 : budget.tokens - spent;
  return {
    requestsPerMinute: requestsPerMinute && divided(requestsPerMinute),
    tokensPerMinute: tokensPerMinute && divided(tokensPerMinute),
    concurrency: concurrency && divided(concurrency),
    budget: budget && left > 0 ? { ...budget, tokens: spent + divided(left) } : budget,
  };
}
