import type { UsageRow } from "#shared/usage/usage-row.ts";
import type { Hold, Settled } from "../limits/limits.ts";

/** The tokens that a key used of its budget in one period. */
export interface Spending {
  readonly keyId: string;
  /** The name of the period, as `budgetPeriodAt` gives it. */
  readonly period: string;
  readonly endsAtMs: number;
  readonly tokens: number;
}

/**
 * The end of a request. `isFree` is true if the store has already freed its hold, because the end was reported with a
 * later demand of the key.
 */
export interface Ended extends Settled {
  readonly isFree?: boolean;
}

/** Everything that one gateway has to write at one time. Its counts are added once, however often it is sent. */
export interface Batch {
  /** The token of this boot of the gateway. Another boot numbers its batches anew. */
  readonly gateway: string;
  /** Counts up by one with each batch of this gateway. */
  readonly sequence: number;
  readonly settled: readonly Ended[];
  /** The keys with ends that were reported to the store under the name of this batch, even without an answer. */
  readonly toldOf: readonly string[];
  /** Holds of requests under way, whose seats are to be renewed. */
  readonly renewed: readonly Hold[];
  readonly spent: readonly Spending[];
  readonly usage: readonly UsageRow[];
}

/**
 * The store of the ends of requests. `write` fails with a Fault `backend_unavailable`; the same batch may then be sent
 * again.
 */
export interface Books {
  /** `gateways` is the number of gateways that wrote lately, this one included. */
  write(batch: Batch): Promise<{ readonly gateways: number }>;
}

/** Returns the name under which the limits of a key keep the tokens spent by a batch, until the books have it. */
export function batchName({ gateway, sequence }: Pick<Batch, "gateway" | "sequence">): string {
  return `${gateway}:${sequence}`;
}
