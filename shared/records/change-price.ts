import { Fault } from "../fault/fault.ts";
import { amountText } from "../money/money.ts";
import { priceTermNames, type Prices } from "../prices/price-terms.ts";
import type { Clock } from "../process/clock.ts";
import type { Actor } from "./audit-entry.ts";
import { type KeyStore, retryConflicts } from "./key-store.ts";
import { pricesMax, type PriceRecord, type PriceStore } from "./price-record.ts";
import { type RecordReplaced, replaceRecord } from "./replace-record.ts";

interface PriceDependencies {
  readonly prices: PriceStore;
  readonly keys: Pick<KeyStore, "awaitReplica">;
  readonly clock: Pick<Clock, "wall">;
  /** The actor that the audit trail names. */
  readonly actor: Actor;
}

/** Sets all prices of a model for every gateway, whatever they were before. */
export function setPrice(
  price: string,
  given: Prices,
  { prices, ...dependencies }: PriceDependencies,
): Promise<RecordReplaced<PriceRecord>> {
  const set = async (before: PriceRecord | undefined, at: number) => {
    const [now, was] = [textsOf(given), before && textsOf(before)];
    if (Object.keys(now).length === 0) {
      const message = `Missing prices: at least one of ${priceTermNames.join(", ")} is needed.`;
      throw new Fault("missing_required_parameter", { message, param: "input" });
    }
    if (before === undefined && (await prices.list()).length >= pricesMax) {
      const message = `There are ${pricesMax} prices already (pricesMax): remove one first.`;
      throw new Fault("price_change_refused", { message });
    }
    const each = Object.fromEntries(priceTermNames.map((term) => [term, given[term]]));
    const after = { version: 1, createdAt: at, changedAt: at, ...before, name: price, ...each };
    const entry = { ...aboutPrice(price), action: "price_set", detail: { ...now, ...(was && { was }) } } as const;
    const isSame = before !== undefined && JSON.stringify(was) === JSON.stringify(now);
    return { after: isSame ? before : after, entry };
  };
  return replaceRecord(price, set, { store: prices, ...dependencies });
}

/** Removes the prices of a model for every gateway. Another price that fits the model holds from then on, or none. */
export async function removePrice(price: string, { prices, clock, actor }: PriceDependencies): Promise<PriceRecord> {
  const attempt = async () => {
    const record = await prices.find(price);
    if (record === undefined) throw priceUnknown(price);
    const detail = { was: textsOf(record) };
    const entry = { at: clock.wall(), ...actor, ...aboutPrice(price), action: "price_removed", detail } as const;
    return (await prices.remove(record, entry)) === "written" ? record : "conflict";
  };
  return retryConflicts(attempt, "The price was changed at the same time. Try again.");
}

/** The name of an entry of the trail has at most 100 characters. */
const aboutPrice = (price: string) => ({ price, name: price.slice(0, 100) });

function textsOf(prices: Prices): Readonly<Record<string, string>> {
  const given = priceTermNames.map((term) => [term, prices[term]] as const);
  return Object.fromEntries(given.flatMap(([term, price]) => (price === undefined ? [] : [[term, amountText(price)]])));
}

export function priceUnknown(name: string): Fault {
  return new Fault("price_not_found", {
    message: `There is no price of ${name}: \`trunkline prices list\` shows all.`,
    param: "price",
  });
}
