/** The currency of the site, in which pages show money. */
import { signal } from "@preact/signals";
import { amountText, noCurrency, unit } from "#shared/money/money.ts";

export const currency = signal<string>(noCurrency);

/** Returns an amount in few characters: from one unit on without parts of a hundredth. */
export function shortAmount(millionths: number): string {
  return amountText(millionths < unit ? millionths : millionths - (millionths % (unit / 100)));
}
