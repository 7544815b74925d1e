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
  const free = rows.filter(({ model, kind }) => model !== null && table.find(model, kind !== null) === undefined);
  return [...new Set(free.map(({ model }) => model ?? ""))].toSorted();
}
