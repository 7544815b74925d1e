import type { BudgetPeriod, KeyLimits } from "#shared/keys/key-limits.ts";

/** A request's demand on its key's limits, judged before the request may run. */
export interface Demand {
  readonly keyId: string;
  readonly limits: KeyLimits;
  /** The name of the request's seat: a fresh token. */
  readonly seat: string;
  /** The tokens that the request is expected to use: its prompt, and the longest answer that it allows. */
  readonly tokens: number;
}

/** The rest of one limit, and the time until the whole limit is available again. */
export interface Allowance {
  readonly limit: number;
  readonly remaining: number;
  readonly resetMs: number;
}

/** The rate-limit status of a key: its limits per minute, for the headers of an answer. */
export interface Standing {
  readonly requests?: Allowance | undefined;
  readonly tokens?: Allowance | undefined;
}

/** The part of its key's limits that an admitted request holds until it is settled. */
export interface Hold {
  readonly keyId: string;
  readonly limits: KeyLimits;
  readonly seat: string;
  /** Tokens reserved of the limit per minute. */
  readonly tokens: number;
  /** Tokens reserved of the budget. */
  readonly budgetTokens: number;
  /**
   * `here` if only this gateway knows of the hold, `shared` if all gateways do. Only the end of a `shared` hold has to
   * be written in the books.
   */
  readonly kept: "here" | "shared";
}

/** The end of an admitted request: its hold, and the tokens that it really used. */
export interface Settled {
  readonly hold: Hold;
  /**
   * True if a machine took the request. Otherwise its key gets back the whole hold, and the request of the limit per
   * minute.
   */
  readonly ran: boolean;
  readonly usedTokens: number;
}

/**
 * The limit that refuses a request. `budget`: the budget is spent, and nothing helps before its period ends.
 * `budget_reserved`: requests under way have reserved the rest of the budget, and some of them will not use it all.
 */
export type Refusal = "requests" | "tokens" | "concurrency" | "budget" | "budget_reserved";

export type Admission = {
  readonly standing: Standing;
  /** For a key with a budget: the tokens used of it in this period, without reservations. */
  readonly spent?: number | undefined;
} & (
  | { readonly outcome: "admitted"; readonly hold: Hold }
  | {
      readonly outcome: "refused";
      readonly by: Refusal;
      readonly waitMs: number;
      /** Set by a gateway's own share while the store is unavailable. The store may admit the next request at once. */
      readonly isProvisional?: true;
      /** The longest time for which the refusal may be due only to places lent to a gateway that no request needs. */
      readonly lentForMs?: number | undefined;
    }
);

export type Admitted = Extract<Admission, { outcome: "admitted" }>;

/** Places that a gateway asks for before the requests that need them arrive. */
export interface AheadWish {
  readonly keyId: string;
  readonly limits: KeyLimits;
  /** A fresh token for each place. */
  readonly seats: readonly string[];
  /** The tokens of each place. */
  readonly tokens: number;
}

/**
 * The store of a key's limits. It makes one decision on all limits of a key: a request takes from all of them or from
 * none.
 */
export interface Limits {
  /** Returns the admission directly, without a promise, when no other process has to be asked. */
  admit(demand: Demand): Admission | Promise<Admission>;
  /** Returns the rate-limit status of a key. Charges nothing. */
  standing(key: Pick<Demand, "keyId" | "limits">): Promise<Standing>;
}

/** The part of a key's limits per minute that a gateway granted by itself while the store was unavailable. */
export interface GrantedAlone {
  readonly requests: number;
  readonly tokens: number;
}

/** Keeps grants that the store did not make, until they are reported to the store. */
export interface AloneGrants {
  /** Keys with grants that were not reported to the store, and the limits of those grants. */
  readonly untold: ReadonlyMap<string, KeyLimits>;
  /**
   * Returns the total that the store must charge beside its own charges. It counts as reported from now on, unless
   * `untellAlone` takes it back.
   */
  tellAlone(keyId: string): GrantedAlone | undefined;
  /** Takes back what `tellAlone` returned when the store did not answer, so that it is reported again. */
  untellAlone(keyId: string, limits: KeyLimits, granted: GrantedAlone): void;
}

/** Limits that lend places ahead. */
export interface LendingLimits extends Limits {
  /** Returns all the places, or none when so many would leave too little for others. */
  ahead(wish: AheadWish): Promise<readonly Admitted[]>;
}

/** A seat that is not renewed for this long is free again. This frees the seats of a gateway that was killed. */
export const seatLivesMs = 20_000;

/** True if the requests of a key with these limits are tracked one by one while they are under way. */
export function needsSeat(limits: KeyLimits): boolean {
  return limits.concurrency !== undefined || limits.budget !== undefined;
}

/** A period of a budget (`2026-11-21`, `2026-11`; UTC), from its beginning to before its end. */
export interface Period {
  readonly name: string;
  readonly beginsAtMs: number;
  readonly endsAtMs: number;
}

/** The latest period of each kind. Every request needs one, and they seldom change. */
const latest: Partial<Record<BudgetPeriod, Period>> = {};

/** Returns the budget period that contains `wallMs`. */
export function budgetPeriodAt(per: BudgetPeriod, wallMs: number): Period {
  const last = latest[per];
  if (last !== undefined && last.beginsAtMs <= wallMs && wallMs < last.endsAtMs) return last;
  const period = periodAt(per, wallMs);
  latest[per] = period;
  return period;
}

function periodAt(per: BudgetPeriod, wallMs: number): Period {
  const at = new Date(wallMs);
  const iso = at.toISOString();
  const [year, month, day] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()];
  return per === "day"
    ? { name: iso.slice(0, 10), beginsAtMs: Date.UTC(year, month, day), endsAtMs: Date.UTC(year, month, day + 1) }
    : { name: iso.slice(0, 7), beginsAtMs: Date.UTC(year, month, 1), endsAtMs: Date.UTC(year, month + 1, 1) };
}
