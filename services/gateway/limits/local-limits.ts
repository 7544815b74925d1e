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
  roundingUnits,
  waitMsOf,
  windowMs,
  type LimitsUse,
} from "./judge-demand.ts";
import {
  noSeat,
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
   * Returns the tokens that a key used of its budget in a period, if the store has not reported them. `admit` reads
   * this in the same synchronous step that decides.
   */
  readonly spent: (keyId: string, period: string) => number;
}

/** The interval between two searches for keys that can be forgotten. */
const forgetEveryMs = windowMs;

/**
 * Limits in the memory of this gateway. They serve the only gateway that there is, or one gateway's share while the
 * shared store is unavailable. Every decision is one synchronous step.
 */
export class LocalLimits implements Pick<Limits, "limitStatus"> {
  /** The number of gateways that share every limit, as their book last reported it. */
  gateways = 1;
  readonly #options: LocalLimitsOptions;
  readonly #keys = new Map<string, LocalKey>();
  /** Keys with grants that the book of all gateways has not charged, and the limits of those grants. */
  readonly #uncharged = new Map<string, KeyLimits>();
  #forgotAtMs = 0;

  constructor(options: LocalLimitsOptions) {
    this.#options = options;
  }

  /** The number of keys in memory. */
  get size(): number {
    return this.#keys.size;
  }

  admit(demand: Demand): Admission {
    const { keyId, limits, seat, tokens } = demand;
    const { spent, endsInMs } = this.#budgetOf(demand);
    const share = judgingLimits(demand, shareOf(limits, this.gateways, spent));
    const state = { ...this.#stateOf(keyId, share), spent };
    const verdict = judgeDemand(demand, share, state);
    if (verdict.outcome === "refuse") {
      const { by } = verdict;
      const waitMs = waitMsOf({ by, tokens, limits: share, levels: state.levels, budgetEndsInMs: endsInMs });
      return { outcome: "refused", by, waitMs, limitStatus: limitStatusOf(share, state.levels) };
    }
    const { budgetTokens } = verdict;
    const reservation: Reservation = { keyId, limits, seat, tokens: verdict.tokens, budgetTokens, kept: "here" };
    this.adopt(reservation);
    this.#uncharged.set(keyId, limits);
    return { outcome: "admitted", reservation, limitStatus: limitStatusOf(share, this.#stateOf(keyId, share).levels) };
  }

  /** Grows the reservation of a request under way, by what this gateway's share has left. */
  grow(growth: Growth): Reservation {
    const { keyId, limits } = growth.reservation;
    const { spent } = this.#budgetOf(growth.reservation);
    const share = shareOf(limits, this.gateways, spent);
    const grown = growReservation(growth, share, { ...this.#stateOf(keyId, share), spent });
    this.adopt(grown, "here");
    this.#uncharged.set(keyId, limits);
    return grown;
  }

  async limitStatus({ keyId, limits }: Pick<Demand, "keyId" | "limits">): Promise<LimitStatus> {
    const share = shareOf(limits, this.gateways);
    return limitStatusOf(share, this.#stateOf(keyId, share).levels);
  }

  /**
   * Counts a reservation that the shared store admitted or let grow, so that this gateway does not grant its share a second time.
   * `by` is the one that granted what is new of it.
   */
  adopt(reservation: Reservation, by = reservation.kept): void {
    this.#forgetIdle();
    const key = this.#keys.getOrInsertComputed(reservation.keyId, () => new LocalKey());
    key.take(this.#options.clock.now(), shareOf(reservation.limits, this.gateways), { reservation, by });
  }

  /** Counts the reservation of an answer that was admitted before, by an earlier request: its seat, and no request of a minute. */
  occupy(reservation: Reservation): void {
    const key = this.#keys.getOrInsertComputed(reservation.keyId, () => new LocalKey());
    key.take(this.#options.clock.now(), shareOf(reservation.limits, this.gateways), {
      reservation,
      by: reservation.kept,
      requests: 0,
    });
  }

  /** Records the budget use of all gateways, as their store just reported it. The share divides only what is left. */
  learn({ keyId, limits }: Pick<Demand, "keyId" | "limits">, spent: number): void {
    if (limits.budget === undefined) return;
    const period = budgetPeriodAt(limits.budget.per, this.#options.clock.wall());
    this.#keys.getOrInsertComputed(keyId, () => new LocalKey()).learn(period, spent);
  }

  /** Settles a request that was admitted or adopted here. A second call for the same reservation changes nothing. */
  settle(settled: Settled): void {
    const { keyId, limits } = settled.reservation;
    this.#keys.get(keyId)?.settle(this.#options.clock.now(), shareOf(limits, this.gateways), settled);
    if (settled.reservation.kept === "here" && this.#keys.has(keyId)) this.#uncharged.set(keyId, limits);
  }

  /**
   * Returns what the book of all gateways must charge beside its own charges, for grants made here. All of it counts as
   * charged from now on.
   */
  takeCharges(): readonly Charge[] {
    const nowMs = this.#options.clock.now();
    const charges = [...this.#uncharged].flatMap(([keyId, limits]): Charge[] => {
      const use = this.#keys.get(keyId)?.takeCharge(nowMs, shareOf(limits, this.gateways));
      return use === undefined ? [] : [{ keyId, limits, ...use }];
    });
    this.#uncharged.clear();
    return charges;
  }

  #stateOf(keyId: string, share: KeyLimits): ReturnType<LocalKey["stateAt"]> {
    return (this.#keys.get(keyId) ?? new LocalKey()).stateAt(this.#options.clock.now(), share);
  }

  #budgetOf({ keyId, limits }: Pick<Demand, "keyId" | "limits">): {
    readonly spent: number;
    readonly endsInMs: number;
  } {
    if (limits.budget === undefined) return { spent: 0, endsInMs: 0 };
    const wallMs = this.#options.clock.wall();
    const { name, endsAtMs } = budgetPeriodAt(limits.budget.per, wallMs);
    const learned = this.#keys.get(keyId)?.spentIn(name);
    return { spent: learned ?? this.#options.spent(keyId, name), endsInMs: endsAtMs - wallMs };
  }

  #forgetIdle(): void {
    const nowMs = this.#options.clock.now();
    if (nowMs - this.#forgotAtMs < forgetEveryMs) return;
    this.#forgotAtMs = nowMs;
    const wallMs = this.#options.clock.wall();
    for (const [id, key] of this.#keys) {
      if (!key.isIdleAt(nowMs, wallMs)) continue;
      this.#keys.delete(id);
      this.#uncharged.delete(id);
    }
  }
}

type Use = Pick<Charge, "requests" | "tokens">;

/**
 * One gateway's record of how much of a key's limits is used. Callers pass the limits each time, because limits change
 * while requests run.
 */
class LocalKey {
  readonly #reservations = new Map<string, Reservation>();
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
  take(
    nowMs: number,
    limits: KeyLimits,
    {
      reservation,
      by,
      requests = 1,
    }: { readonly reservation: Reservation; readonly by: Reservation["kept"]; readonly requests?: number },
  ): void {
    const before = this.#reservations.get(reservation.seat);
    if (reservation.seat !== noSeat) this.#reservations.set(reservation.seat, reservation);
    this.#reserved += reservation.budgetTokens - (before?.budgetTokens ?? 0);
    this.#charge(
      nowMs,
      limits,
      { requests: before ? 0 : requests, tokens: reservation.tokens - (before?.tokens ?? 0) },
      by,
    );
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

  /** True if a key without any record would have the same state. */
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
 * Returns one gateway's share of a key's limits. Only the rest of a budget is divided: all gateways together spent the
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
