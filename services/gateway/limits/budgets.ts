import { type BudgetPeriod, budgetPeriods } from "#shared/admin/key-terms.ts";
import { moneyMax, sumOf } from "#shared/money/money.ts";
import type { MoneyRate } from "#shared/prices/cost.ts";
import type { Book } from "#shared/records/book.ts";
import type { KeyLimits } from "#shared/records/key-record.ts";
import type { UsageRow } from "#shared/usage/usage.ts";

/** A budget counts tokens, or money in millionths. */
export const budgetUnits = ["tokens", "money"] as const;
export type BudgetUnit = (typeof budgetUnits)[number];
export type Amounts = Readonly<Record<BudgetUnit, number>>;
export const noAmounts: Amounts = { tokens: 0, money: 0 };

/** The name of the limit that each kind of budget is. */
export const limitOfUnit = { tokens: "budget", money: "spend" } as const satisfies Record<BudgetUnit, string>;

/** The limit of a book in a calendar period. */
export interface Budget {
  readonly unit: BudgetUnit;
  readonly limit: number;
  readonly per: BudgetPeriod;
}

/** Returns the budgets of a book. */
export function budgetsOf({ budget, spend }: KeyLimits): readonly Budget[] {
  const all: Budget[] = [];
  if (budget !== undefined) all.push({ unit: "tokens", limit: budget.tokens, per: budget.per });
  if (spend !== undefined) all.push({ unit: "money", limit: spend.millionths, per: spend.per });
  return all;
}

/** Returns the budgets that judge a request. A model without a price is free, and no spend limit blocks it. */
export function judgingBudgets(limits: KeyLimits, { fixed, perMillion }: MoneyRate): readonly Budget[] {
  const isFree = fixed === 0 && perMillion === 0;
  return budgetsOf(isFree ? { budget: limits.budget } : limits);
}

interface PricedPrompt {
  readonly promptTokens?: number | undefined;
  readonly rate: MoneyRate;
}

/** Returns what so many tokens of a prompt and its answers are in each unit. */
export function amountsOf(tokens: number, { promptTokens = 0, rate }: PricedPrompt): Amounts {
  const money = rate.fixed + moneyFor(Math.max(0, tokens - promptTokens), rate);
  return { tokens, money: Math.min(moneyMax, money) };
}

/** Returns what so many tokens of answers take. */
export function moneyFor(tokens: number, { perMillion }: MoneyRate): number {
  return perMillion === 0 ? 0 : sumOf([tokens, perMillion]);
}

/** Returns the tokens of a prompt and its answers for which an amount of money lasts. */
export function tokensFor(money: number, promptTokens: number, { fixed, perMillion }: MoneyRate): number {
  if (perMillion === 0) return money >= fixed ? Infinity : promptTokens;
  return promptTokens + Number((BigInt(money - fixed) * 1_000_000n) / BigInt(perMillion));
}

/** The use of a book in a period, which is named as by `budgetPeriodAt`. */
export interface Spent {
  readonly book: string;
  readonly unit: BudgetUnit;
  readonly period: string;
  readonly amount: number;
}

const everyBudget = budgetPeriods.flatMap((per) => budgetUnits.map((unit) => ({ unit, per })));

/** Returns what a row of usage adds to the book of its key. The key may get a budget of any kind later. */
export function spentByKey(row: UsageRow): readonly Spent[] {
  return row.keyId === "" ? [] : spentIn(row.keyId, everyBudget, row);
}

/** Returns what a row of usage adds to other books, which count only the periods for which they have a budget. */
export function spentByOthers(row: UsageRow, books: readonly Book[]): readonly Spent[] {
  return books.flatMap(({ id, limits }) => (id === row.keyId ? [] : spentIn(id, budgetsOf(limits), row)));
}

function spentIn(book: string, budgets: readonly Pick<Budget, "unit" | "per">[], row: UsageRow): readonly Spent[] {
  const amounts: Amounts = { tokens: row.promptTokens + row.completionTokens, money: row.cost };
  const all: Spent[] = [];
  for (const { unit, per } of budgets) {
    const period = row.day.slice(0, per === "day" ? dayCharacters : monthCharacters);
    if (amounts[unit] > 0) all.push({ book, unit, period, amount: amounts[unit] });
  }
  return all;
}

/** True for the book of a key. Its use is the sum of its rows; other books have a colon in their names. */
export function isOfKey(bookId: string): boolean {
  return !bookId.includes(":");
}

/** Returns the end of a period by its name. */
export function endOfPeriod(name: string): number {
  return budgetPeriodAt(name.length === dayCharacters ? "day" : "month", Date.parse(name)).endsAtMs;
}

const dayCharacters = "2026-11-21".length;
const monthCharacters = "2026-11".length;

interface PeriodOfTime {
  /** `2026-11-21` or `2026-11` (UTC). */
  readonly name: string;
  readonly beginsAtMs: number;
  readonly endsAtMs: number;
}

/** The latest period of each kind: nearly every question is about it, and there are many. */
const latestPeriods = new Map<BudgetPeriod, PeriodOfTime>();

/** Returns the budget period that contains `wallMs`. */
export function budgetPeriodAt(per: BudgetPeriod, wallMs: number): PeriodOfTime {
  const latest = latestPeriods.get(per);
  if (latest !== undefined && wallMs >= latest.beginsAtMs && wallMs < latest.endsAtMs) return latest;
  const at = new Date(wallMs);
  const [year, month, day] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()];
  const period =
    per === "day"
      ? { beginsAtMs: Date.UTC(year, month, day), endsAtMs: Date.UTC(year, month, day + 1) }
      : { beginsAtMs: Date.UTC(year, month, 1), endsAtMs: Date.UTC(year, month + 1, 1) };
  const named = { name: at.toISOString().slice(0, per === "day" ? dayCharacters : monthCharacters), ...period };
  latestPeriods.set(per, named);
  return named;
}
