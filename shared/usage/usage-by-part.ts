import type { Days } from "./days-asked.ts";
import { nameOfUsage, noUsage, type UsageRead, type UsageRow, type UsageRows, workMetrics } from "./usage.ts";
import type { CutPart } from "./sum-usage.ts";

/**
 * Reads the usage of machines or of end users. A row without a name has what their table has not: requests that no machine
 * took or that named no user, and days before the table or after its end. The sum is therefore that of the usage of keys.
 */
export async function readUsageBy(part: CutPart, usage: UsageRows, days: Days): Promise<UsageRead> {
  const found = await usage.read(days, part === "machine" ? "machines" : "users");
  const all = await usage.read(days);
  const named = found.rows.map((row) => ({ ...row, keyId: row.endUser?.split(":")[0] ?? "" }));
  const rest = new Map<string, UsageRow>();
  const add = (row: UsageRow, times: number): void => {
    const none = { ...noUsage, day: row.day, keyId: part === "user" ? row.keyId : "" };
    const before = rest.get(nameOfUsage(none)) ?? none;
    const counts = workMetrics.map((metric) => [metric, before[metric] + times * row[metric]]);
    rest.set(nameOfUsage(none), { ...before, ...Object.fromEntries(counts) });
  };
  for (const row of all.rows) add(row, 1);
  for (const row of named) add(row, -1);
  const others = [...rest.values()].filter((row) => workMetrics.some((metric) => row[metric] > 0));
  return { rows: [...named, ...others], unread: found.unread + all.unread };
}
