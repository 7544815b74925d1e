import { expect } from "vitest";
import type { LoadLedger } from "../../harness/load/load-ledger.ts";
import { until } from "../../harness/until.ts";
import { lane } from "../lane.ts";

/** The whole lane has the sizes that the guarantees speak of, which take minutes; the fast one small ones of the same. */
export function sized<T>(sizes: { readonly fast: T; readonly whole: T }): T {
  return lane.isWhole ? sizes.whole : sizes.fast;
}

/** How long a test may take in this lane, with room for slow machines. */
export const testTimeoutMs = sized({ fast: 60_000, whole: 900_000 });

/** Prints what a load came to, and insists that each of its answers was served, exactly. */
export function expectExact(ledger: LoadLedger, title: string): void {
  console.log(ledger.summary(title));
  expect(ledger.told).toEqual({});
  expect(ledger.of("exact")).toBe(ledger.sent);
}

/** Resolves when so many requests of a load have begun, or have come to their end. */
export function untilCounted(ledger: LoadLedger, what: "begun" | "settled", count: number): Promise<unknown> {
  const options = { what: `${count} requests to be ${what}`, timeoutMs: testTimeoutMs / 2, intervalMs: 20 };
  return until(() => ledger[what] >= count, options);
}
