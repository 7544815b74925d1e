import { z } from "zod";

export const budgetPeriods = ["day", "month"] as const;
export type BudgetPeriod = (typeof budgetPeriods)[number];

/** Maximum number of tokens of a key in a calendar day or month (UTC), prompts and answers together. */
export const tokenBudget = z.strictObject({
  tokens: z.int().min(1).max(1_000_000_000_000),
  per: z.enum(budgetPeriods),
});
export type TokenBudget = Readonly<z.infer<typeof tokenBudget>>;

/** The limits of a key; an absent field means no limit. Limits hold over all gateways together. */
export const keyLimits = z.strictObject({
  requestsPerMinute: z.int().min(1).max(1_000_000).optional(),
  tokensPerMinute: z.int().min(1).max(1_000_000_000).optional(),
  /** Maximum number of concurrent requests. */
  concurrency: z.int().min(1).max(10_000).optional(),
  budget: tokenBudget.optional(),
});
export type KeyLimits = Readonly<z.infer<typeof keyLimits>>;
