import { z } from "zod";
import type { RedisConnection } from "../process/redis-connection.ts";
import { compareUsage, usageMetrics, usageRow, type UsageMetric, type UsageRow, type UsageRows } from "./usage-row.ts";

/** All days that there are rows of, in order of their names. */
export const usageDaysAt = "usage-days";

/** A hash for each day, so that old days lapse whole. */
export const usageAt = (day: string): string => `usage:${day}`;

/**
 * The fields of a row in the hash of its day: `<key id>:<metric>:<model>`, without the last part for no model. Neither
 * a key id nor a metric has a colon in it; a model may have anything.
 */
export function usageFields(row: UsageRow): readonly (readonly [field: string, count: number])[] {
  const model = row.model === null ? "" : `:${row.model}`;
  return usageMetrics
    .filter((metric) => row[metric] !== 0)
    .map((metric) => [`${row.keyId}:${metric}${model}`, row[metric]]);
}

const usageField = /^(?<keyId>[^:]*):(?<metric>[^:]*)(?::(?<model>.*))?$/su;
const days = z.array(z.string());
const fieldsPerPage = 1_000;

export class RedisUsage implements UsageRows {
  readonly #redis: RedisConnection;

  constructor(redis: RedisConnection) {
    this.#redis = redis;
  }

  /** Day by day and in pages, so that however much there is, Redis is not held up by it. */
  async read({ from, to }: { readonly from: string; readonly to: string }): Promise<readonly UsageRow[]> {
    const told = await this.#redis.run("tell the days of usage", (redis) =>
      redis.zrangebylex(usageDaysAt, `[${from}`, `[${to}`),
    );
    const rows: UsageRow[] = [];
    for (const day of days.parse(told)) {
      rows.push(...rowsOf(day, await this.#fieldsOf(day)));
    }
    return rows.sort(compareUsage);
  }

  /** A field that is told twice has the same count, or a later one. */
  async #fieldsOf(day: string): Promise<Readonly<Record<string, string>>> {
    const fields: Record<string, string> = {};
    let cursor = "0";
    do {
      const [next, told] = await this.#redis.run("read the usage of a day", (redis) =>
        redis.hscan(usageAt(day), cursor, "COUNT", fieldsPerPage),
      );
      for (let at = 0; at < told.length; at += 2) fields[told[at] ?? ""] = told[at + 1] ?? "";
      cursor = next;
    } while (cursor !== "0");
    return fields;
  }
}

function rowsOf(day: string, fields: Readonly<Record<string, string>>): UsageRow[] {
  const rows = new Map<string, Record<string, unknown>>();
  for (const [field, count] of Object.entries(fields)) {
    const { keyId, metric, model = null } = usageField.exec(field)?.groups ?? {};
    if (!isMetric(metric)) continue;
    const row = rows.getOrInsertComputed(JSON.stringify([keyId, model]), () => ({ day, keyId, model, ...nothing }));
    row[metric] = Number(count);
  }
  return [...rows.values()].map((row) => usageRow.parse(row));
}

const nothing = Object.fromEntries(usageMetrics.map((metric) => [metric, 0]));

/** A newer version may count what this one does not know of. */
function isMetric(name: string | undefined): name is UsageMetric {
  return usageMetrics.some((metric) => metric === name);
}
