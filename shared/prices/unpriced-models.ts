import { daysAsked } from "../usage/days-asked.ts";
import type { UsageRows } from "../usage/usage.ts";
import type { PriceTable } from "./price-table.ts";

/** Days for which a model counts as asked for. */
export const askedDays = 30;

/** Returns the models that were asked for lately and have no price, by name. */
export async function unpricedModels(
  table: PriceTable,
  { usage, nowMs }: { readonly usage: UsageRows; readonly nowMs: number },
): Promise<readonly string[]> {
  const { rows } = await usage.read(daysAsked({ days: askedDays }, nowMs));
  const models = new Set(rows.flatMap(({ model }) => model ?? []));
  return [...models].filter((model) => table.find(model, true) === undefined).toSorted();
}
