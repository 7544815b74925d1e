import { Argument, type Command } from "commander";
import { priceOperations } from "#shared/admin/price-operations.ts";
import { runOn } from "#shared/admin/run-on.ts";
import { askedDays } from "#shared/prices/unpriced-models.ts";
import { priceTermNames, priceTerms, type PriceTerm } from "#shared/prices/price-terms.ts";
import { externalEnd } from "#shared/records/price-name.ts";
import { scope } from "#shared/records/key-record.ts";
import { priceText, type ShownPrice } from "#shared/records/price-record.ts";
import { type CliCommand, type CliContext, commandIn, readBy } from "../terminal/command-line.ts";
import { utcTime } from "../terminal/quantity-text.ts";
import { type Field, fieldLines, listed, type TextColumn } from "../terminal/table-text.ts";
import { onStore, whichStoreHelp } from "../site/with-key-store.ts";

const { listPrices, removePrice, setPrice, showPrice } = priceOperations;

interface PriceOptions extends Partial<Record<PriceTerm, string>> {
  readonly external?: true | undefined;
}

export function pricesCommand(context: CliContext): Command {
  const prices = commandIn("prices", context).more(`
All gateways follow a change within a second. A request costs what its model's prices were when it was admitted. A model
without a price is free, and no budget in money stops it. TRUNKLINE_CURRENCY names the currency.

Examples:
  trunkline prices set 'qwen*' --input 0.20 --cached 0.02 --output 0.60
  trunkline prices set gpt-5 --external --input 1.25 --output 10
  trunkline prices list
  trunkline prices remove 'qwen*'
${whichStoreHelp}`);
  addSet(prices);
  prices
    .command("list", { isDefault: true })
    .description("show every price, and the models that were asked for and have none")
    .more("\nExamples:\n  trunkline prices list\n  trunkline prices list --json")
    .does(onStore, async (store) => {
      const { data, unread, currency, without } = await runOn(store, listPrices, {});
      const { text, remark } = listed(columns, data, "There is no price yet; `trunkline prices set` makes one.");
      const free = `Asked for in the last ${askedDays} days and without a price, so free: ${without.join(", ")}\n`;
      const shown = (widthMax: number | undefined) => text(widthMax) + (without.length > 0 ? free : "");
      return { answer: { prices: data, currency, without }, unread, text: shown, remark };
    });
  ofOne(prices, "show", "show the prices of a model")
    .more("\nExample:\n  trunkline prices show 'qwen*'")
    .does(onStore, async (store, model: string, options: PriceOptions) => {
      const answer = await runOn(store, showPrice, { params: { price: nameOf(model, options) } });
      const fields = columns.map(([heading, cell]): Field => [heading, cell(answer)]);
      return { answer, text: fieldLines(fields.filter(([, text]) => text !== "-")) };
    });
  ofOne(prices, "remove", "remove the prices of a model; another price that fits it holds then, or it is free")
    .more("\nExample:\n  trunkline prices remove 'qwen*'")
    .does(onStore, async (store, model: string, options: PriceOptions) => {
      const price = nameOf(model, options);
      await runOn(store, removePrice, { params: { price } });
      return { answer: { price, outcome: "removed" }, text: `${price} has no price of its own any more` };
    });
  return prices;
}

function ofOne(prices: CliCommand, name: string, description: string): CliCommand {
  const model = new Argument("<model>", "a model, or a pattern of models with *").argParser(readBy(scope));
  return prices.sub(name, description, model).option("--external", "the prices at external machines");
}

function nameOf(model: string, { external }: PriceOptions): string {
  return external ? `${model}${externalEnd}` : model;
}

function termsOf(price: Partial<Record<PriceTerm, unknown>>): readonly PriceTerm[] {
  return priceTermNames.filter((term) => price[term] !== null && price[term] !== undefined);
}

function addSet(prices: CliCommand): void {
  const set = ofOne(prices, "set", "set all prices of a model, in place of those before");
  for (const term of priceTermNames)
    set.option(`--${term} <price>`, `the price of ${priceTerms[term]}`, readBy(priceText));
  set
    .more(`
A price has at most six decimals and is at most 1000000. The name of a model comes before a pattern, a longer pattern
before a shorter one, and then the first by the alphabet; a name stands for all variants of that model too, as in the scopes of a key.
Prices with --external hold at external machines alone, and come before the others there. Quote patterns, or the shell takes the *.

Examples:
  trunkline prices set qwen3:8b --input 0.20 --output 0.60
  trunkline prices set '*' --input 0.10 --output 0.30 --json
  trunkline prices set whisper --second 0.0001
  trunkline prices set flux --image 0.02
  trunkline prices set gpt-5 --external --input 1.25 --cached 0.125 --output 10 --request 0.001`)
    .does(onStore, async (store, model: string, { external, ...given }: PriceOptions) => {
      const body = Object.fromEntries(termsOf(given).map((term) => [term, given[term]]));
      const answer = await runOn(store, setPrice, { params: { price: nameOf(model, { external }) }, body });
      const said = answer.outcome === "unchanged" ? "cost that before:" : "costs";
      const costs = termsOf(answer).map((term) => `${term} ${answer[term]}`);
      return { answer, text: `${answer.price} ${said} ${costs.join(", ")} (${store.currency})` };
    });
}

const columns: readonly TextColumn<ShownPrice>[] = [
  ["model", ({ price }) => price, "wrap"],
  ...priceTermNames.map((term): TextColumn<ShownPrice> => [term, (price) => price[term] ?? "-", "right"]),
  ["changed", ({ changed_at: at }) => utcTime(at)],
];
