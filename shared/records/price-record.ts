import { z } from "zod";
import { amountText, decimalsMax, moneyPattern, readMoney, unit } from "../money/money.ts";
import { type PriceTerm, priceTermNames, priceTerms } from "../prices/price-terms.ts";
import { externalEnd, priceName } from "./price-name.ts";
import type { RecordStore } from "./key-store.ts";
import { type RecordForm, recordFields, shownTimes, showTimes } from "./record-form.ts";

/** Maximum number of prices of a site. Every gateway holds all of them. */
export const pricesMax = 1_000;
/** The highest price, in whole units of the currency. */
export const priceMax = 1_000_000;

const millionths = z
  .int()
  .min(0)
  .max(priceMax * unit);

/** Returns a schema's shape with a field for each price. */
function eachPrice<Field extends z.ZodType>(field: (term: PriceTerm) => Field): Record<PriceTerm, Field> {
  const fields = priceTermNames.map((term) => [term, field(term)]);
  return Object.fromEntries(fields) as Record<PriceTerm, Field>;
}

/** The record of a model's prices, each in millionths. Unknown fields are kept. */
export const priceRecord = z.looseObject({
  name: priceName,
  ...eachPrice(() => millionths.optional()),
  ...recordFields,
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

/** The prices of a model as the command line and the admin API show them. */
export const shownPrice = z.strictObject({
  price: priceName.describe(`The model or pattern of models, with \`${externalEnd}\` behind it for external machines.`),
  ...eachPrice((term) => z.string().nullable().describe(`The price of ${priceTerms[term]}; null for none.`)),
  ...shownTimes,
});
export type ShownPrice = z.infer<typeof shownPrice>;

export function showPrice(record: PriceRecord): ShownPrice {
  const prices = priceTermNames.map((term) => [term, record[term] === undefined ? null : amountText(record[term])]);
  return {
    price: record.name,
    ...(Object.fromEntries(prices) as Record<PriceTerm, string | null>),
    ...showTimes(record),
  };
}

/** Returns the prices that a record has, as people write them. */
function textsOf(prices: PriceRecord): Readonly<Record<string, string>> {
  const given = priceTermNames.map((term) => [term, prices[term]] as const);
  return Object.fromEntries(given.flatMap(([term, price]) => (price === undefined ? [] : [[term, amountText(price)]])));
}

export const priceForm = {
  at: "prices",
  noun: "price",
  about: "price",
  schema: priceRecord,
  max: pricesMax,
  full: `There are ${pricesMax} prices already (pricesMax): remove one first.`,
  unknown: (name) => `There is no price of ${name}: \`trunkline prices list\` shows all.`,
  detail: textsOf,
} as const satisfies RecordForm<PriceRecord>;
