import { z } from "zod";
import type { StateDatabase } from "../store/state-database.ts";
import type { StateStore } from "../store/open-key-store.ts";
import type { RedisConnection } from "../process/redis-connection.ts";
import type { Days } from "./days-asked.ts";
import { compareText } from "./sum-usage.ts";

const usageCount = z.int().nonnegative();

const usageCounts = z.strictObject({
  requests: usageCount,
  /** Number of these requests that failed. */
  failed: usageCount,
  promptTokens: usageCount,
  completionTokens: usageCount,
  /** Number of requests with a first token, and the sum of their waits for it. */
  answered: usageCount,
  firstTokenMs: usageCount,
  durationMs: usageCount,
});
export type UsageCounts = Readonly<z.infer<typeof usageCounts>>;
export type UsageMetric = keyof UsageCounts;
export const usageMetrics: readonly UsageMetric[] = usageCounts.keyof().options;

/** The usage of one key and one model in one day (UTC). */
export const usageRow = usageCounts.extend({
  day: z.string().regex(/^\d{4}-\d{2}-\d{2}$/),
  keyId: z.string(),
  /** Null for requests without a model that the key may use. */
  model: z.string().nullable(),
});
export type UsageRow = Readonly<z.infer<typeof usageRow>>;

/** Days that rows are kept. */
export const usageKeptDays = 400;

/** Reads usage rows, sorted by day, key and model. */
export interface UsageRows {
  read(days: Days): Promise<UsageRead>;
}

/** The rows of some days, and the number of those that are left out: their counts are more than any machine can have used. */
export interface UsageRead {
  readonly rows: readonly UsageRow[];
  readonly unread: number;
}

/** Returns the usage records of the store that holds the keys. */
export function openUsage(state: StateStore): UsageRows {
  return {
    async read(days) {
      const found = state.kind === "redis" ? await readRedis(state.redis, days) : readSqlite(state.database, days);
      const rows = found.flatMap((row) => usageRow.safeParse(row).data ?? []);
      return { rows: rows.sort(compareUsage), unread: found.length - rows.length };
    },
  };
}

/** Returns what a request under way changes in its record. */
export function madeOf({ promptTokens, completionTokens, answered, firstTokenMs, durationMs }: UsageRow): object {
  return { promptTokens, completionTokens, totalMs: durationMs, ...(answered > 0 && { firstTokenMs }) };
}

/** Adds the counts of `other` to those of `one`. */
export function addUsage<Counts extends UsageCounts>(one: Counts, other: UsageCounts): Counts {
  return { ...one, ...Object.fromEntries(usageMetrics.map((metric) => [metric, one[metric] + other[metric]])) };
}

/** Compares rows by day, key and model; rows without a model come first. */
export function compareUsage(one: UsageRow, other: UsageRow): number {
  return compareText(one.day, other.day) || compareText(one.keyId, other.keyId) || compareText(one.model, other.model);
}

/** The sorted set of all days with usage rows. */
export const redisUsageDaysAt = "usage-days";

/** The hash of one day. Each day has its own hash, so that an old day expires as a whole. */
const redisUsageAt = (day: string): string => `usage:${day}`;

/**
 * Returns where a row is added to in Redis. The fields of the hash are `<key id>:<metric>:<model>`, without the last part
 * when there is no model. A key id and a metric have no colon; a model may have any character.
 */
export function usageInRedis(row: UsageRow) {
  const model = row.model === null ? "" : `:${row.model}`;
  const fields: [field: string, count: number][] = [];
  for (const metric of usageMetrics)
    if (row[metric] !== 0) fields.push([`${row.keyId}:${metric}${model}`, row[metric]]);
  return { day: row.day, at: redisUsageAt(row.day), fields };
}

const usageField = /^(?<keyId>[^:]*):(?<metric>[^:]*)(?::(?<model>.*))?$/su;
const daysReply = z.array(z.string());
const fieldsPerPage = 1_000;

/** Reads day by day and in pages, so that no amount of data blocks Redis. */
async function readRedis(redis: RedisConnection, { from, to }: Days): Promise<object[]> {
  const reply = await redis.run("tell the days of usage", (client) =>
    client.zrangebylex(redisUsageDaysAt, `[${from}`, `[${to}`),
  );
  const rows: object[] = [];
  for (const day of daysReply.parse(reply)) rows.push(...rowsOf(day, await fieldsOf(redis, day)));
  return rows;
}

/** Reads all fields of a day. A field that HSCAN returns twice has the same count, or a later one. */
async function fieldsOf(redis: RedisConnection, day: string): Promise<Readonly<Record<string, string>>> {
  const fields: Record<string, string> = {};
  let cursor = "0";
  do {
    const [next, reply] = await redis.run("read the usage of a day", (client) =>
      client.hscan(redisUsageAt(day), cursor, "COUNT", fieldsPerPage),
    );
    for (let at = 0; at < reply.length; at += 2) fields[reply[at] ?? ""] = reply[at + 1] ?? "";
    cursor = next;
  } while (cursor !== "0");
  return fields;
}

function rowsOf(day: string, fields: Readonly<Record<string, string>>): object[] {
  const rows = new Map<string, Record<string, unknown>>();
  for (const [field, count] of Object.entries(fields)) {
    const { keyId, metric, model = null } = usageField.exec(field)?.groups ?? {};
    if (!isMetric(metric)) continue;
    const row = rows.getOrInsertComputed(JSON.stringify([keyId, model]), () => ({ day, keyId, model, ...noUsage }));
    row[metric] = Number(count);
  }
  return [...rows.values()];
}

export const noUsage: UsageCounts = usageCounts.parse(Object.fromEntries(usageMetrics.map((metric) => [metric, 0])));

/** Returns true for a metric of this build. A newer build may store others. */
function isMetric(name: string | undefined): name is UsageMetric {
  return usageMetrics.some((metric) => metric === name);
}

/**
 * The table stores an empty text for no model, since the model is part of its key. Node's SQLite refuses to read a number
 * that is no safe integer, so tokens are read up to the first of those.
 */
function readSqlite(database: StateDatabase, { from, to }: Days): readonly object[] {
  return database.read(
    "read usage",
    (sql) => sql.all`
      SELECT day, key_id AS keyId, nullif(model, '') AS model, requests, failed,
        nullif(min(prompt_tokens, ${unsafe}), ${unsafe}) AS promptTokens,
        nullif(min(completion_tokens, ${unsafe}), ${unsafe}) AS completionTokens,
        answered, first_token_ms AS firstTokenMs, duration_ms AS durationMs
      FROM usage WHERE day BETWEEN ${from} AND ${to}`,
  );
}

/** As a BigInt, since SQLite would take a number of this size for a real. */
const unsafe = BigInt(Number.MAX_SAFE_INTEGER) + 1n;
