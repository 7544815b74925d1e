import { z } from "zod";
import { readMoney } from "#shared/money/money.ts";
import { countPattern, countText, readCount, unitOf } from "#shared/process/quantities.ts";
import { type MoneyBudget, moneyBudget, tokenBudget, type TokenBudget } from "#shared/records/key-record.ts";

/** Returns a schema that reads the output of `countText`, and plain digits, within these bounds. */
export function countWithin({
  min = 1,
  max = Number.MAX_SAFE_INTEGER,
}: {
  readonly min?: number;
  readonly max?: number;
}): z.ZodType<number, string> {
  const message = `must be a whole number from ${countText(min)} to ${countText(max)}, such as 60, 100k or 2M`;
  return z
    .string()
    .regex(countPattern, message)
    .transform(readCount)
    .refine((count) => count >= min && count <= max, message);
}

const { maxValue } = tokenBudget.shape.tokens;

export const writtenBudget: z.ZodType<TokenBudget, string> = z
  .string()
  .regex(/^\d{1,15}[kM]?\/(?:day|month)$/, "must be tokens a day or a month, such as 500k/day or 2M/month")
  .transform((text) => {
    const [tokens = "", per] = text.split("/");
    return { tokens: readCount(tokens), per };
  })
  .refine(
    (budget): budget is TokenBudget => tokenBudget.safeParse(budget).success,
    `must be from 1 to ${countText(maxValue ?? Infinity)} tokens`,
  );

export const writtenSpend: z.ZodType<MoneyBudget, string> = z
  .string()
  .regex(/^[\d.]{1,16}\/(?:day|month)$/, "must be money a day or a month, such as 20/day or 500/month")
  .transform((text) => {
    const [amount = "", per] = text.split("/");
    return { millionths: readMoney(amount), per };
  })
  .refine(
    (budget): budget is MoneyBudget => moneyBudget.safeParse(budget).success,
    "must be an amount from 0.000001 to 999999999.999999, with at most six decimals",
  );

const byteUnits = ["kB", "MB", "GB", "TB"] as const;

/** Formats a number of bytes in decimal units: `815 MB`, `4.7 GB`. */
export function byteSize(bytes: number): string {
  let [count, unit]: [number, string] = [bytes, "B"];
  for (const larger of byteUnits) {
    if (Math.round(count) < 1_000) break;
    [count, unit] = [count / 1_000, larger];
  }
  const digits = unit === "B" || count >= 9.95 ? 0 : 1;
  return `${count.toFixed(digits)} ${unit}`;
}

/** Groups the digits of a number: `131,072`. */
export const grouped = new Intl.NumberFormat("en-US");

/** Formats a duration: `0.42 s`. */
export function secondsText(ms: number): string {
  return `${(ms / 1_000).toFixed(2)} s`;
}

/** Formats a time to the second, readable and valid in RFC 3339: `2026-01-31 09:30:00Z`. */
export function utcTime(time: number | string): string {
  return new Date(time).toISOString().replace("T", " ").replace(/\.\d+/, "");
}

/** Formats a past duration in short: `0.4 s`, `12 s`, `3 h`. */
export function agoText(ms: number): string {
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`;
  const [unit, unitMs] = unitOf(ms);
  return `${Math.floor(ms / unitMs)} ${unit[0]}`;
}
