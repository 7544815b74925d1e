import type { KeyLimits } from "#shared/records/key-record.ts";
import { type Amounts, budgetUnits, type BudgetUnit, noAmounts } from "./budgets.ts";
import { chargedLevels, emptyLevels, levelsAt, type LimitsUse, roundingUnits } from "./judge-demand.ts";
import { type Charge, type Held, noSeat, type Reservation, type Settled } from "./limits.ts";

type Use = Pick<Charge, "requests" | "tokens">;

/** A reservation's part of a book, the one that granted what is new of it, and the requests of a minute that it takes. */
export interface Taken extends Pick<Reservation, "seat" | "kept"> {
  readonly held: Held;
  readonly by: Reservation["kept"];
  readonly requests: number;
}

/** The use of a budget as the store has told it, and with what this gateway used since. */
interface SpentHere {
  readonly told: number;
  amount: number;
}

/**
 * One gateway's record of how much of a book's limits is used. Callers pass the limits each time, because limits change
 * while requests run.
 */
export class LocalBook {
  readonly #reservations = new Map<string, Held & Pick<Reservation, "kept">>();
  readonly #reserved: Record<BudgetUnit, number> = { ...noAmounts };
  #levels = emptyLevels;
  /** The same levels as the book of all gateways knows them: without grants made here while it was unavailable. */
  #charged = emptyLevels;
  /** The limits of the last charge. */
  #limits: KeyLimits = {};
  readonly #spent = new Map<BudgetUnit, SpentHere & { readonly period: string; readonly endsAtMs: number }>();

  stateAt(nowMs: number, limits: KeyLimits): Omit<LimitsUse, "spent"> {
    const levels = levelsAt(this.#levels, limits, nowMs);
    return { levels, seatsTaken: this.#reservations.size, reserved: { ...this.#reserved } };
  }

  /** Records a reservation, or what it has grown by. */
  take(nowMs: number, limits: KeyLimits, { held, seat, kept, by, requests }: Taken): void {
    const before = this.#reservations.get(seat);
    if (seat !== noSeat) this.#reservations.set(seat, { ...held, kept });
    for (const unit of budgetUnits) this.#reserved[unit] += held.reserved[unit] - (before?.reserved[unit] ?? 0);
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
  settle(nowMs: number, limits: KeyLimits, { reservation, ran, usedTokens, usedMoney }: Settled): void {
    const held = this.#reservations.get(reservation.seat);
    if (held === undefined) return;
    this.#reservations.delete(reservation.seat);
    const used: Amounts = { tokens: usedTokens, money: usedMoney };
    for (const unit of budgetUnits) {
      const spent = this.#spent.get(unit);
      if (spent !== undefined) spent.amount += used[unit];
      this.#reserved[unit] -= held.reserved[unit];
    }
    const use = { requests: ran ? 0 : -1, tokens: (ran ? usedTokens : 0) - held.tokens };
    this.#charge(nowMs, limits, use, held.kept);
  }

  /** Records what was used in a period up to now. Later settlements here are added to it. */
  learn(
    unit: BudgetUnit,
    { name, endsAtMs }: { readonly name: string; readonly endsAtMs: number },
    told: number,
  ): void {
    this.#spent.set(unit, { period: name, endsAtMs, told, amount: told });
  }

  spentIn(unit: BudgetUnit, period: string): Readonly<SpentHere> | undefined {
    const spent = this.#spent.get(unit);
    return spent?.period === period ? spent : undefined;
  }

  /** True if a book without any record would have the same state. */
  isIdleAt(nowMs: number, wallMs: number): boolean {
    const budgetIsOver = [...this.#spent.values()].every(({ endsAtMs }) => endsAtMs <= wallMs);
    const { requests, tokens } = levelsAt(this.#levels, this.#limits, nowMs);
    return this.#reservations.size === 0 && requests <= roundingUnits && tokens <= roundingUnits && budgetIsOver;
  }

  #charge(nowMs: number, limits: KeyLimits, use: Use, kept: Reservation["kept"]): void {
    this.#limits = limits;
    this.#levels = chargedLevels(levelsAt(this.#levels, limits, nowMs), use, limits);
    if (kept === "shared") this.#charged = chargedLevels(levelsAt(this.#charged, limits, nowMs), use, limits);
  }
}
