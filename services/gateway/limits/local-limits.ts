import type { Book } from "#shared/records/book.ts";
import type { KeyLimits } from "#shared/records/key-record.ts";
import { LocalBook, type Taken } from "./local-book.ts";
import type { Clock } from "#shared/process/clock.ts";
import { type Amounts, type Budget, budgetPeriodAt, budgetsOf, type BudgetUnit, noAmounts } from "./budgets.ts";
import {
  growReservation,
  judgeDemand,
  judgingLimits,
  limitStatusOf,
  refusedStatus,
  spentPeriod,
  tightest,
  waitMsOf,
  windowMs,
  type BookUse,
} from "./judge-demand.ts";
import {
  type Admission,
  type Charge,
  type Demand,
  type Growth,
  type Reservation,
  type Limits,
  type Settled,
  type LimitStatus,
} from "./limits.ts";

interface LocalLimitsOptions {
  readonly clock: Pick<Clock, "now" | "wall">;
  /**
   * Returns what a book used of a budget in a period, if the store has not reported it. `admit` reads this in the same
   * synchronous step that decides.
   */
  readonly spent: (bookId: string, period: string, unit: BudgetUnit) => number;
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
    const { books, seat, tokens, rate } = demand;
    const uses = books.map((book) => this.#useOf(book, demand));
    const verdict = judgeDemand(demand, uses);
    if (verdict.outcome === "refuse") {
      const { by, at } = verdict;
      const { book, share, levels, spent } = uses[at] as BookUse;
      const wallMs = this.#options.clock.wall();
      const waitMs = waitMsOf({ by, tokens, limits: share, levels, wallMs });
      const period = spentPeriod(by, share, { spent, wallMs });
      const statuses = uses.map((each) => limitStatusOf(each.share, each.levels));
      return { outcome: "refused", by, book, waitMs, period, limitStatus: refusedStatus(statuses, at) };
    }
    const reservation: Reservation = { held: verdict.held, seat, rate, kept: "here" };
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
  learn({ books }: Pick<Demand, "books">, spent: readonly Partial<Amounts>[]): void {
    for (const [at, { id, limits }] of books.entries()) {
      for (const { unit, per } of budgetsOf(limits)) {
        const used = spent[at]?.[unit];
        if (used === undefined) continue;
        const period = budgetPeriodAt(per, this.#options.clock.wall());
        this.#books.getOrInsertComputed(id, () => new LocalBook()).learn(unit, period, used);
      }
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

  #useOf(book: Book, { seat }: Pick<Demand, "seat">): BookUse {
    const spent: Record<BudgetUnit, number> = { ...noAmounts };
    const told: Record<BudgetUnit, number> = { ...noAmounts };
    for (const budget of budgetsOf(book.limits)) {
      const its = this.#spentOf(book.id, budget);
      [spent[budget.unit], told[budget.unit]] = [its.amount, its.told];
    }
    const share = judgingLimits({ seat }, shareOf(book.limits, this.gateways, told));
    return { book, share, ...this.#stateOf(book.id, share), spent };
  }

  #spentOf(id: string, { unit, per }: Budget) {
    const { name } = budgetPeriodAt(per, this.#options.clock.wall());
    return this.#books.get(id)?.spentIn(unit, name) ?? { told: 0, amount: this.#options.spent(id, name, unit) };
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

/**
 * Returns one gateway's share of a book's limits. Of a budget only the rest is divided that the store last told of: all
 * gateways together spent the other part. However many gateways there are, each admits a request now and then.
 */
function shareOf(limits: KeyLimits, gateways: number, told: Amounts = noAmounts): KeyLimits {
  if (gateways <= 1) return limits;
  const { requestsPerMinute, tokensPerMinute, concurrency, budget, spend } = limits;
  const divided = (limit: number): number => Math.max(1, Math.floor(limit / gateways));
  const rest = (limit: number, used: number): number => (limit > used ? used + divided(limit - used) : limit);
  return {
    requestsPerMinute: requestsPerMinute && divided(requestsPerMinute),
    tokensPerMinute: tokensPerMinute && divided(tokensPerMinute),
    concurrency: concurrency && divided(concurrency),
    budget: budget && { ...budget, tokens: rest(budget.tokens, told.tokens) },
    spend: spend && { ...spend, millionths: rest(spend.millionths, told.money) },
  };
}
