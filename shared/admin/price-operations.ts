import { z } from "zod";
import { readMoney } from "../money/money.ts";
import { PriceTable } from "../prices/price-table.ts";
import { askedDays, unpricedModels } from "../prices/unpriced-models.ts";
import { priceUnknown, removePrice, setPrice } from "../records/change-price.ts";
import { priceName } from "../records/price-name.ts";
import { givenPrices, showPrice, shownPrice } from "../records/price-record.ts";
import { listRecords, onStore, outcome, reads, recordsOf } from "./operation.ts";

const priceList = recordsOf(z.array(shownPrice).describe("By name.")).extend({
  currency: z.string().describe("The currency of the site's prices, or `units`."),
  without: z
    .array(z.string())
    .readonly()
    .describe(`The models that were asked for in the last ${askedDays} days and have no price: they are free.`),
});
const removedPrice = z.strictObject({ price: priceName, state: z.literal("removed") });

const ofOnePrice = {
  ...reads,
  params: z.strictObject({
    price: priceName.describe(
      "A model or a pattern of models, percent-encoded; with ` external` behind it for external machines.",
    ),
  }),
  refusals: ["price_not_found"],
} as const;

/** The operations of what models cost. */
export const priceOperations = {
  listPrices: onStore({
    ...reads,
    path: "/prices",
    summary: "List the prices of models, and the models that were asked for and have none",
    answer: priceList,
    async run(_, { prices, usage, clock, currency }) {
      const table = new PriceTable(await prices.list());
      const without = await unpricedModels(table, { usage, nowMs: clock.wall() });
      return { ...(await listRecords((unread) => prices.list(unread), showPrice)), currency, without };
    },
  }),
  showPrice: onStore({
    ...ofOnePrice,
    path: "/prices/{price}",
    summary: "Show the prices of a model",
    answer: shownPrice,
    async run({ params: { price } }, { prices }) {
      const record = await prices.find(price);
      if (record === undefined) throw priceUnknown(price);
      return showPrice(record);
    },
  }),
  setPrice: onStore({
    ...ofOnePrice,
    method: "PUT",
    path: "/prices/{price}",
    summary: "Set all prices of a model, for requests that any gateway admits from now on",
    body: givenPrices,
    answer: shownPrice.extend({ outcome }),
    refusals: ["price_change_refused"],
    forAdmins: true,
    example: { input: "0.20", cached: "0.02", output: "0.60" },
    async run({ params: { price }, body }, site) {
      const given = Object.entries(body).flatMap(([term, text]) =>
        text === undefined ? [] : [[term, readMoney(text)]],
      );
      const { outcome: after, record } = await setPrice(price, Object.fromEntries(given), site);
      return { ...showPrice(record), outcome: after };
    },
  }),
  removePrice: onStore({
    ...ofOnePrice,
    method: "DELETE",
    path: "/prices/{price}",
    summary: "Remove the prices of a model; another price that fits it holds then, or it is free",
    answer: removedPrice,
    forAdmins: true,
    async run({ params: { price } }, site) {
      await removePrice(price, site);
      return { price, state: "removed" as const };
    },
  }),
};
