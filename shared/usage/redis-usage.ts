import { z } from "zod";
import type { RedisConnection } from "../process/redis-connection.ts";
import { compareUsage, usageMetrics, usageRow, type UsageMetric, type UsageRow, type UsageRows } from "./usage-row.ts";

/** The sorted set of all days with usage rows. */
export const usageDaysAt = "usage-days";

/** The hash of one day. Each day has its own hash, so that an old day expires as a whole. */
export const usageAt = (day: string): string => `usage:${day}`;

/**
 * Returns the hash fields of a row: `<key id>:<metric>:<model>`, without the last part when there is no model. A key id
 * and a metric have no colon; a model may have any character.
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

  /** Reads day by day and in pages, so that no amount of data blocks Redis. */
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

  /** Reads all fields of a day. A field that HSCAN returns twice has the same count, or a later one. */
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

/** Returns true for a metric of this build. A newer build may store others. */
function isMetric(name: string | undefined): name is UsageMetric {
  return usageMetrics.some((metric) => metric === name);
}
