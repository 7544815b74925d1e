/**
 * Money is a whole number of millionths of the site's currency, up to 2^53. No floating point takes part. The browser loads
 * this file.
 */
export const unit = 1_000_000;
export const moneyMax = Number.MAX_SAFE_INTEGER;
export const decimalsMax = 6;

/** The word for money where `TRUNKLINE_CURRENCY` is not set. */
export const noCurrency = "units";
export const currencyPattern = /^[A-Za-z]{1,8}$/;

/** Below 10^9, so that each such amount is a safe number of millionths. */
export const moneyPattern = /^\d{1,9}(?:\.\d{1,6})?$/;

/** Reads an amount as millionths: `500`, `0.012345`. Returns NaN for other texts. */
export function readMoney(text: string): number {
  if (!moneyPattern.test(text)) return Number.NaN;
  const [whole = "", decimals = ""] = text.split(".");
  return Number(whole) * unit + Number(decimals.padEnd(decimalsMax, "0"));
}

/** Formats millionths exactly, with two to six decimals: `500.00`, `0.012345`. */
export function amountText(millionths: number): string {
  const decimals = String(millionths % unit).padStart(decimalsMax, "0");
  return `${Math.floor(millionths / unit)}.${decimals.replace(/0{1,4}$/, "")}`;
}

/** Formats amounts for one column, with as many decimals as the one with most of them has. */
export function amountsText(amounts: readonly number[]): readonly string[] {
  const texts = amounts.map(amountText);
  const decimals = Math.max(...texts.map((text) => text.length - text.indexOf(".")));
  return texts.map((text) => text.padEnd(text.indexOf(".") + decimals, "0"));
}

/** Formats millionths with their currency: `0.012345 EUR`. */
export function moneyText(millionths: number, currency: string = noCurrency): string {
  return `${amountText(millionths)} ${currency}`;
}

/** Some things, and the price of a million of them in millionths. */
export type PricedCount = readonly [count: number, perMillion: number];

/** Returns the exact sum of what these things cost, rounded up to a millionth. Beyond `moneyMax` it stays there. */
export function sumOf(...counts: readonly PricedCount[]): number {
  let sum = 0n;
  for (const [count, perMillion] of counts)
    if (count !== 0 && perMillion !== 0) sum += BigInt(count) * BigInt(perMillion);
  const up = (sum + BigInt(unit) - 1n) / BigInt(unit);
  return up > BigInt(moneyMax) ? moneyMax : Number(up);
}
