import { lane } from "../lane.ts";

/** The whole lane has the sizes that the guarantees speak of, which take minutes; the fast one small ones of the same. */
export function sized<T>(sizes: { readonly fast: T; readonly whole: T }): T {
  return lane.isWhole ? sizes.whole : sizes.fast;
}

/** How long a test may take in this lane, with room for slow machines. */
export const testTimeoutMs = sized({ fast: 60_000, whole: 900_000 });
