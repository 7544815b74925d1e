import { Fault } from "../fault/fault.ts";
import { amountText } from "../money/money.ts";
import { priceTermNames, type Prices } from "../prices/price-terms.ts";
import type { Clock } from "../process/clock.ts";
import type { Actor } from "./audit-entry.ts";
import { retryConflicts } from "./key-store.ts";
import { pricesMax, type PriceRecord, type PriceStore } from "./price-record.ts";

export interface PriceDependencies {
  readonly prices: PriceStore;
  readonly clock: Pick<Clock, "wall">;
  /** The actor that the audit trail names. */
  readonly actor: Actor;
}

const contended = "The price was changed at the same time. Try again.";

/** Sets all prices of a model for every gateway, whatever they were before. */
export async function setPrice(
  name: string,
  given: Prices,
  { prices, clock, actor }: PriceDependencies,
): Promise<{ readonly outcome: "changed" | "unchanged"; readonly record: PriceRecord }> {
  if (Object.values(given).length === 0) {
    const message = `Missing prices: at least one of ${priceTermNames.join(", ")} is needed.`;
    throw new Fault("missing_required_parameter", { message, param: "input" });
  }
  const attempt = async () => {
    const before = await prices.find(name);
    const [now, was] = [textsOf(given), before && textsOf(before)];
    if (before !== undefined && JSON.stringify(was) === JSON.stringify(now))
      return { outcome: "unchanged", record: before } as const;
    if (before === undefined && (await prices.list()).length >= pricesMax) {
      const message = `There are ${pricesMax} prices already (pricesMax): remove one first.`;
      throw new Fault("price_change_refused", { message });
    }
    const at = clock.wall();
    const none = Object.fromEntries(priceTermNames.map((term) => [term, undefined]));
    const { version = 0, createdAt = at } = before ?? {};
    const record = { ...before, ...none, ...given, name, version: version + 1, createdAt, changedAt: at };
    const detail = { ...now, ...(was && { was }) };
    const entry = { at, ...actor, action: "price_set", price: name, name, detail } as const;
    return (await prices.write(record, entry)) === "written" ? ({ outcome: "changed", record } as const) : "conflict";
  };
  return retryConflicts(attempt, contended);
}

/** Removes the prices of a model for every gateway. Another price that fits the model holds from then on, or none. */
export async function removePrice(name: string, { prices, clock, actor }: PriceDependencies): Promise<PriceRecord> {
  const attempt = async () => {
    const record = await prices.find(name);
    if (record === undefined) throw priceUnknown(name);
    const detail = { was: textsOf(record) };
    const entry = { at: clock.wall(), ...actor, action: "price_removed", price: name, name, detail } as const;
    return (await prices.remove(record, entry)) === "written" ? record : "conflict";
  };
  return retryConflicts(attempt, contended);
}

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
