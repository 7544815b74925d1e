/** The whole product; what it is judged by. */
export const ownVariant = "trunkline";

/** The product in any of its set-ups: with two gateways, or with something switched off. */
export function isOwn(variant: string): boolean {
  return variant === ownVariant || variant.startsWith(`${ownVariant}-`);
}
