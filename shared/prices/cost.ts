import { sumOf, unit } from "../money/money.ts";
import type { Prices } from "./price-terms.ts";

/** The size of a request as it is priced, in whole numbers. A recording is believed up to `secondsMax`. */
export interface PricedSize {
  readonly seconds: number;
  readonly secondsMax: number;
  readonly images: number;
}

/** The use of a model that has a price, in whole numbers. */
export interface PricedUse {
  readonly promptTokens: number;
  /** The part of the prompt that the machine had cached. More than the prompt is not believed. */
  readonly cachedTokens: number;
  readonly completionTokens: number;
  readonly seconds: number;
  readonly images: number;
  readonly requests: number;
}

/** Returns the cost of a use in millionths: the exact sum, rounded up once. */
export function costOf(prices: Prices, use: PricedUse): number {
  const { input = 0, cached = input, output = 0, second = 0, image = 0, request = 0 } = prices;
  const cachedTokens = Math.min(use.cachedTokens, use.promptTokens);
  return sumOf(
    [use.promptTokens - cachedTokens, input],
    [cachedTokens, cached],
    [use.completionTokens, output],
    [use.seconds * unit, second],
    [use.images * unit, image],
    [use.requests * unit, request],
  );
}

/** The money that a request may take, in millionths: before its answer, and for a million tokens of the answer. */
export interface MoneyRate {
  readonly fixed: number;
  readonly perMillion: number;
}

/** The rate of a model without a price. No spend limit blocks it. */
export const freeRate: MoneyRate = { fixed: 0, perMillion: 0 };
