import type { UsageRow } from "#shared/usage/usage-row.ts";
import type { Hold, Settled } from "../limits/limits.ts";

/** What a key used of its budget in one period. */
export interface Spending {
  readonly keyId: string;
  /** As `budgetPeriodAt` names it. */
  readonly period: string;
  readonly endsAtMs: number;
  readonly tokens: number;
}

/** The end of a request, and whether what it held is free: the store heard of it when it was asked for the next one. */
export interface Ended extends Settled {
  readonly isFree?: boolean;
}

/** All that one gateway has to write at one time. What it counts is added once however often it is sent. */
export interface Batch {
  /** This boot of the gateway: another one counts its batches anew. */
  readonly gateway: string;
  /** Counts up by one with each batch of this gateway. */
  readonly sequence: number;
  readonly settled: readonly Ended[];
  /** The keys that have ends under the name of this batch, heard or not. */
  readonly toldOf: readonly string[];
  /** Holds of requests that are still under way, whose seats are to live on. */
  readonly renewed: readonly Hold[];
  readonly spent: readonly Spending[];
  readonly usage: readonly UsageRow[];
}

/** Where the ends of requests are written down. Fails with a Fault `backend_unavailable`; the same batch may then be sent again. */
export interface Books {
  /** `gateways` is how many have written lately, this one included. */
  write(batch: Batch): Promise<{ readonly gateways: number }>;
}

/** What requests spent stands under this name with their key's limits until the books have it. */
export function batchName({ gateway, sequence }: Pick<Batch, "gateway" | "sequence">): string {
  return `${gateway}:${sequence}`;
}
