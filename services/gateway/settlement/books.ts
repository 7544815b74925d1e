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

/** All that one gateway has to write at one time. What it counts is added once however often it is sent. */
export interface Batch {
  /** This boot of the gateway: another one counts its batches anew. */
  readonly gateway: string;
  /** Counts up by one with each batch of this gateway. */
  readonly sequence: number;
  readonly settled: readonly Settled[];
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
