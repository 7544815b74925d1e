import { Fault } from "#shared/fault/fault.ts";
import type { Book } from "#shared/records/book.ts";
import { hasSeat } from "./judge-demand.ts";
import {
  type Admission,
  type Demand,
  emptyReservation,
  type Limits,
  type LimitsBook,
  type LimitStatus,
  type Reservation,
} from "./limits.ts";
import type { LocalLimits } from "./local-limits.ts";
import type { Settlements } from "./settlements.ts";

interface SharedLimitsOptions {
  /** The limits that all gateways share. */
  readonly book: Pick<LimitsBook, "limitStatus">;
  /** This gateway's share of the limits. */
  readonly local: LocalLimits;
  readonly settlements: Pick<Settlements, "isAway" | "grantsShare" | "away" | "release" | "ask" | "occupy">;
}

/**
 * The limits of all gateways together, or this gateway's share of them while their book does not answer. No request
 * fails because the book is unavailable, and none runs uncounted. The share counts every admission of the book, so that
 * it is correct when the first request needs it. `Reservation.kept` says which of the two made a reservation.
 */
export class SharedLimits implements Limits {
  readonly #options: SharedLimitsOptions;

  constructor(options: SharedLimitsOptions) {
    this.#options = options;
  }

  async admit(demand: Demand): Promise<Admission> {
    const { local, settlements } = this.#options;
    if (settlements.grantsShare) return this.#ownShare(demand);
    let admission;
    try {
      admission = await settlements.ask(demand);
    } catch (error) {
      this.#away(error);
      // The part of the budgets that it may have reserved is unknown here; the book finds it by the seat.
      const uncertain = emptyReservation(demand, "shared");
      if (hasSeat(uncertain)) settlements.release(uncertain);
      return this.#ownShare(demand);
    }
    if (admission.outcome === "admitted") local.adopt(admission.reservation);
    if (admission.spent !== undefined) local.learn(demand, admission.spent);
    return admission;
  }

  occupy(demand: Omit<Demand, "tokens" | "promptTokens">): Reservation {
    const { local, settlements } = this.#options;
    const reservation = emptyReservation(demand, settlements.isAway ? "here" : "shared");
    local.occupy(reservation);
    settlements.occupy(reservation);
    return reservation;
  }

  async limitStatus(books: readonly Book[]): Promise<LimitStatus> {
    const { book, local, settlements } = this.#options;
    if (settlements.isAway) return local.limitStatus(books);
    try {
      return await book.limitStatus(books);
    } catch (error) {
      this.#away(error);
      return local.limitStatus(books);
    }
  }

  #ownShare(demand: Demand): Admission {
    const admission = this.#options.local.admit(demand);
    return admission.outcome === "refused" ? { ...admission, isProvisional: true } : admission;
  }

  /** Throws any error but an unavailable book: a bug is not an outage. */
  #away(error: unknown): void {
    if (!(error instanceof Fault && error.code === "backend_unavailable")) throw error;
    this.#options.settlements.away(error);
  }
}
