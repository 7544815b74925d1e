import { PriceTable } from "#shared/prices/price-table.ts";
import { askedDays, unpricedModels } from "#shared/prices/unpriced-models.ts";
import { onOneLine } from "#shared/process/clean-text.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { PriceStore } from "#shared/records/price-record.ts";
import { openUsage } from "#shared/usage/usage.ts";
import { type Finding, ok, skipped, warning } from "./run-checks.ts";

const namedMax = 20;

/** Looks for models that were asked for and have no price, on a site that has prices. */
export async function lookAtPrices(
  store: { readonly prices: PriceStore; readonly state: Parameters<typeof openUsage>[0] } | undefined,
  clock: Clock,
): Promise<Finding> {
  const table = new PriceTable((await store?.prices.list()) ?? []);
  if (store === undefined || table.isEmpty)
    return skipped("No model has a price; `trunkline prices set` gives it one.");
  const free = await unpricedModels(table, { usage: openUsage(store.state), nowMs: clock.wall() });
  if (free.length === 0) return ok(`Each model that was asked for in the last ${askedDays} days has a price.`);
  const more = free.length > namedMax ? ` and ${free.length - namedMax} more` : "";
  return warning(
    `Models that were asked for have no price and are free: ${onOneLine(free.slice(0, namedMax).join(", "))}${more}.`,
    "`trunkline prices set <model> --input 0.20 --output 0.60` sets one; 0 says that a model is to be free.",
  );
}
