/** What a figure is held to. */
export type Bound = { readonly atMost: number } | { readonly atLeast: number };

export function isWithin(value: number, bound: Bound): boolean {
  return "atMost" in bound ? value <= bound.atMost : value >= bound.atLeast;
}
