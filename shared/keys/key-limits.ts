import { z } from "zod";

export const budgetPeriods = ["day", "month"] as const;
export type BudgetPeriod = (typeof budgetPeriods)[number];

/** How many tokens a key may use in a calendar day or month (UTC), prompts and answers together. */
export const tokenBudget = z.strictObject({
  tokens: z.int().min(1).max(1_000_000_000_000),
  per: z.enum(budgetPeriods),
});
export type TokenBudget = Readonly<z.infer<typeof tokenBudget>>;

/** What a key may do at most; what is absent has no limit. They hold over all gateways together. */
export const keyLimits = z.strictObject({
  requestsPerMinute: z.int().min(1).max(1_000_000).optional(),
  tokensPerMinute: z.int().min(1).max(1_000_000_000).optional(),
  /** Requests that may be under way at once. */
  concurrency: z.int().min(1).max(10_000).optional(),
  budget: tokenBudget.optional(),
});
export type KeyLimits = Readonly<z.infer<typeof keyLimits>>;
