/** `all` for the sizes that the guarantees speak of, which take minutes; else small ones of the same. */
export const isFullLane = process.env["TRUNKLINE_FAULTS"] === "all";

export function sized<T>(sizes: { readonly fast: T; readonly full: T }): T {
  return isFullLane ? sizes.full : sizes.fast;
}

/** How long a test may take in this lane, with room for slow machines. */
export const testTimeoutMs = sized({ fast: 60_000, full: 900_000 });
