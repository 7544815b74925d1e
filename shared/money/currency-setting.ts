import { z } from "zod";
import { currencyPattern, noCurrency } from "./money.ts";

/** The setting of every process that tells amounts of money. */
export const currencySetting = {
  /** The word for the currency of prices and budgets. */
  currency: z.string().regex(currencyPattern, "must be one to eight letters, such as EUR").default(noCurrency),
};
