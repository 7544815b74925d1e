import { z } from "zod";
import { tokenBudget, type TokenBudget } from "#shared/keys/key-limits.ts";
import { countText, toCount } from "./count.ts";

/** Formats a budget: `500k/day`, `2M/month`. */
export function budgetText({ tokens, per }: TokenBudget): string {
  return `${countText(tokens)}/${per}`;
}

const { maxValue } = tokenBudget.shape.tokens;

export const writtenBudget: z.ZodType<TokenBudget, string> = z
  .string()
  .regex(/^\d{1,15}[kM]?\/(?:day|month)$/, "must be tokens a day or a month, such as 500k/day or 2M/month")
  .transform((text) => {
    const [tokens = "", per] = text.split("/");
    return { tokens: toCount(tokens), per };
  })
  .refine(
    (budget): budget is TokenBudget => tokenBudget.safeParse(budget).success,
    `must be from 1 to ${countText(maxValue ?? Infinity)} tokens`,
  );
