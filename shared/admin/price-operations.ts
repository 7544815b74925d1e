import { z } from "zod";
import { Fault } from "../fault/fault.ts";
import { readMoney } from "../money/money.ts";
import { PriceTable } from "../prices/price-table.ts";
import { askedDays, unpricedModels } from "../prices/unpriced-models.ts";
import { priceTermNames } from "../prices/price-terms.ts";
import { findRecord, removeRecord, setRecord } from "../records/change-record.ts";
import { priceName } from "../records/price-name.ts";
import { givenPrices, priceForm, showPrice, shownPrice } from "../records/price-record.ts";
import { changeOutcome, listRecords, onStore, reads, recordsOf, showChange } from "./operation.ts";

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
    run: async ({ params: { price } }, site) => showPrice(await findRecord(priceForm, price, site)),
  }),
  setPrice: onStore({
    ...ofOnePrice,
    method: "PUT",
    path: "/prices/{price}",
    summary: "Set all prices of a model, for requests that any gateway admits from now on",
    body: givenPrices,
    answer: shownPrice.extend(changeOutcome),
    refusals: ["price_change_refused"],
    forAdmins: true,
    example: { input: "0.20", cached: "0.02", output: "0.60" },
    async run({ params: { price }, body }, site) {
      const given = priceTermNames.map((term) => [term, body[term] === undefined ? undefined : readMoney(body[term])]);
      if (given.every(([, each]) => each === undefined)) {
        const message = `Missing prices: at least one of ${priceTermNames.join(", ")} is needed.`;
        throw new Fault("missing_required_parameter", { message, param: "input" });
      }
      return showChange(await setRecord(priceForm, { name: price }, () => Object.fromEntries(given), site), showPrice);
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
      await removeRecord(priceForm, price, site);
      return { price, state: "removed" as const };
    },
  }),
};
