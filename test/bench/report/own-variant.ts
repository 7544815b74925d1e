/** The whole product; what it is judged by. */
export const ownVariant = "trunkline";

/** The product in any of its set-ups: with two gateways, with a small machine, or with a crowd of simulated ones. */
export function isOwn(variant: string): boolean {
  return variant === ownVariant || variant.startsWith(`${ownVariant}-`) || variant.startsWith("crowd-");
}

/** How the product is called with one feature switched off: that feature comes behind it. */
export const without = `${ownVariant}-no-`;
