import type { BudgetPeriod, KeyLimits } from "#shared/keys/key-limits.ts";

/** What one request asks of its key's limits before it may run. */
export interface Demand {
  readonly keyId: string;
  readonly limits: KeyLimits;
  /** Names the request's seat; a fresh token. */
  readonly seat: string;
  /** What it is expected to cost: its prompt, and the longest answer that it allows. */
  readonly tokens: number;
}

/** How much of a limit is left, and in what time it is whole again. */
export interface Allowance {
  readonly limit: number;
  readonly remaining: number;
  readonly resetMs: number;
}

/** How a key stands with its limits by the minute, for the headers of an answer. */
export interface Standing {
  readonly requests?: Allowance | undefined;
  readonly tokens?: Allowance | undefined;
}

/** What an admitted request holds of its key's limits until it is settled. */
export interface Hold {
  readonly keyId: string;
  readonly limits: KeyLimits;
  readonly seat: string;
  /** Reserved of the tokens by the minute. */
  readonly tokens: number;
  /** Reserved of the budget. */
  readonly budgetTokens: number;
  /** Whether this gateway alone knows of it, or all do; only then its end has to be written in the books. */
  readonly kept: "here" | "shared";
}

/** The end of an admitted request: what it held, and what it really took. */
export interface Settled {
  readonly hold: Hold;
  /** Whether a machine took it; if not, its key is given back all that it held, the request by the minute included. */
  readonly ran: boolean;
  readonly usedTokens: number;
}

/**
 * Why a request may not run. `budget` is spent and nothing helps before its period ends; `budget_reserved` means that
 * what is left of it is reserved by requests under way, some of which will not use it all.
 */
export type Refusal = "requests" | "tokens" | "concurrency" | "budget" | "budget_reserved";

export type Admission = {
  readonly standing: Standing;
  /** Of a key with a budget: what is used of it in this period, reservations not counted. */
  readonly spent?: number | undefined;
} & (
  | { readonly outcome: "admitted"; readonly hold: Hold }
  | {
      readonly outcome: "refused";
      readonly by: Refusal;
      readonly waitMs: number;
      /** So long it may be only for places that are lent to a gateway, and that no request needs. */
      readonly lentForMs?: number | undefined;
    }
);

export type Admitted = Extract<Admission, { outcome: "admitted" }>;

/** Places that are asked for before the requests come that need them. */
export interface AheadWish {
  readonly keyId: string;
  readonly limits: KeyLimits;
  /** A fresh token for each place. */
  readonly seats: readonly string[];
  /** For each of them. */
  readonly tokens: number;
}

/** Where a key's limits are kept: one decision on all of them at once, so that all are taken or none is. */
export interface Limits {
  /** At once, where nobody else has to be asked. */
  admit(demand: Demand): Admission | Promise<Admission>;
  /** How a key stands, without taking anything. */
  standing(key: Pick<Demand, "keyId" | "limits">): Promise<Standing>;
}

/** Limits that lend places ahead. */
export interface LendingLimits extends Limits {
  /** All of them, or none where so many would leave too little for others. */
  ahead(wish: AheadWish): Promise<readonly Admitted[]>;
}

/** A seat that nobody renews for so long is free again, so that those of a gateway that was killed are. */
export const seatLivesMs = 20_000;

/** Whether requests of such a key are known one by one while they are under way. */
export function needsSeat(limits: KeyLimits): boolean {
  return limits.concurrency !== undefined || limits.budget !== undefined;
}

/** A period of a budget (`2026-11-21`, `2026-11`; UTC), from its beginning to before its end. */
export interface Period {
  readonly name: string;
  readonly beginsAtMs: number;
  readonly endsAtMs: number;
}

/** The periods that were asked for last: every request asks, and they seldom change. */
const latest: Partial<Record<BudgetPeriod, Period>> = {};

/** The period of a budget that a moment lies in. */
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
