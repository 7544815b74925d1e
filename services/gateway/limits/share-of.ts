import type { KeyLimits } from "#shared/keys/key-limits.ts";

/**
 * Returns one gateway's share of a key's limits. Only the rest of a budget is divided: all gateways together spent the
 * other part. However many gateways there are, each admits a request now and then.
 */
export function shareOf(limits: KeyLimits, gateways: number, spent: number): KeyLimits {
  if (gateways <= 1) return limits;
  const { requestsPerMinute, tokensPerMinute, concurrency, budget } = limits;
  const divided = (limit: number): number => Math.max(1, Math.floor(limit / gateways));
  const left = budget === undefined ? 0 : budget.tokens - spent;
  return {
    requestsPerMinute: requestsPerMinute && divided(requestsPerMinute),
    tokensPerMinute: tokensPerMinute && divided(tokensPerMinute),
    concurrency: concurrency && divided(concurrency),
    budget: budget && left > 0 ? { ...budget, tokens: spent + divided(left) } : budget,
  };
}
