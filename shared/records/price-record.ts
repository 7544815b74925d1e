import { z } from "zod";
import { amountText, decimalsMax, moneyPattern, readMoney, unit } from "../money/money.ts";
import { type PriceTerm, priceTermNames, priceTerms } from "../prices/price-terms.ts";
import { isoTime } from "../process/clock.ts";
import { externalEnd, priceName } from "./price-name.ts";
import type { RecordStore } from "./key-store.ts";

/** Maximum number of prices of a site. Every gateway holds all of them. */
export const pricesMax = 1_000;
/** The highest price, in whole units of the currency. */
export const priceMax = 1_000_000;

const wallMs = z.int().nonnegative();
const millionths = z
  .int()
  .min(0)
  .max(priceMax * unit);

/** Returns a schema's shape with a field for each price. */
function eachPrice<Field extends z.ZodType>(field: (term: PriceTerm) => Field): Record<PriceTerm, Field> {
  const fields = priceTermNames.map((term) => [term, field(term)]);
  return Object.fromEntries(fields) as Record<PriceTerm, Field>;
}

/** The record of a model's prices, each in millionths; times are milliseconds since 1970. Unknown fields are kept. */
export const priceRecord = z.looseObject({
  name: priceName,
  /** 1 for a new record, and one more with every change, so that a writer detects a concurrent change. */
  version: z.int().positive(),
  ...eachPrice(() => millionths.optional()),
  createdAt: wallMs,
  changedAt: wallMs,
});
export type PriceRecord = Readonly<z.output<typeof priceRecord>>;

export type PriceStore = RecordStore<PriceRecord>;

/** An amount as people write it. */
export const priceText = z
  .string()
  .regex(moneyPattern, `must be an amount from 0 to ${priceMax} with at most ${decimalsMax} decimals, such as 0.20`)
  .refine((text) => !(readMoney(text) > priceMax * unit), `must be at most ${priceMax}`);

export const givenPrices = z.strictObject(
  eachPrice((term) => priceText.optional().describe(`The price of ${priceTerms[term]}.`)),
);

const time = z.iso.datetime();

/** The prices of a model as the command line and the admin API show them. */
export const shownPrice = z.strictObject({
  price: priceName.describe(`The model or pattern of models, with \`${externalEnd}\` behind it for external machines.`),
  ...eachPrice((term) => z.string().nullable().describe(`The price of ${priceTerms[term]}; null for none.`)),
  created_at: time,
  changed_at: time,
});
export type ShownPrice = z.infer<typeof shownPrice>;

export function showPrice(record: PriceRecord): ShownPrice {
  const prices = priceTermNames.map((term) => [term, record[term] === undefined ? null : amountText(record[term])]);
  return {
    price: record.name,
    ...(Object.fromEntries(prices) as Record<PriceTerm, string | null>),
    created_at: isoTime(record.createdAt),
    changed_at: isoTime(record.changedAt),
  };
}
