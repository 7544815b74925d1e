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
  /** In millionths of the currency of the site. */
  cost: usageCount,
});
export type UsageCounts = Readonly<z.infer<typeof usageCounts>>;
export type UsageMetric = keyof UsageCounts;
export const usageMetrics: readonly UsageMetric[] = usageCounts.keyof().options;

/** The usage of one day (UTC). A row that was read has the parts of its table alone. */
export const usageRow = usageCounts.extend({
  day: z.string().regex(/^\d{4}-\d{2}-\d{2}$/),
  /** Empty in sums of machines and of end users. */
  keyId: z.string(),
  team: z.string().nullable(),
  /** The digest of the person. */
  person: z.string().nullable(),
  /** The kind of machine that answered; null for an own one. */
  kind: z.literal("external").nullable(),
  /** Null for requests without a model that the key may use. */
  model: z.string().nullable(),
  /** Null for requests that no machine took. */
  machine: z.string().nullable(),
  /** `<key id>:<digest>` of the end user of an app. */
  endUser: z.string().nullable(),
});
export type UsageRow = Readonly<z.infer<typeof usageRow>>;

export const noParts = { keyId: "", team: null, person: null, kind: null, model: null, machine: null, endUser: null };

/** A usage row without parts and without counts. */
export const noUsage: Omit<UsageRow, "day"> = {
  ...(Object.fromEntries(usageMetrics.map((metric) => [metric, 0])) as UsageCounts),
  ...noParts,
};

/** Days that rows are kept. */
export const usageKeptDays = 400;

/** The counts that are kept of machines and end users. Redis pays for each count of a request. */
export const workMetrics: readonly UsageMetric[] = ["requests", "failed", "promptTokens", "completionTokens", "cost"];

/**
 * The tables of usage: the parts of their rows, and whether these tell models apart. Rows that differ in other parts only are
 * added up. A row without the first part is in no row of the table.
 */
export const usageTables = {
  keys: {
    at: "usage",
    parts: ["keyId", "team", "person", "kind"],
    byModel: true,
    metrics: usageMetrics,
    keptDays: usageKeptDays,
  },
  machines: { at: "usage-machines", parts: ["machine"], byModel: false, metrics: workMetrics, keptDays: usageKeptDays },
  users: { at: "usage-users", parts: ["endUser"], byModel: false, metrics: workMetrics, keptDays: 35 },
} as const;
export type UsageTable = keyof typeof usageTables;
const tables = Object.values(usageTables);

/** Reads the rows of a table, by default those of keys, sorted by day and parts. */
export interface UsageRows {
  read(days: Days, table?: UsageTable): Promise<UsageRead>;
}

/** The rows of some days, and the number of those that are left out: their counts are more than any machine can have used. */
export interface UsageRead {
  readonly rows: readonly UsageRow[];
  readonly unread: number;
}

/** Returns the usage records of the store that holds the keys. */
export function openUsage(state: StateStore): UsageRows {
  return {
    async read(days, table = "keys") {
      const found =
        state.kind === "redis" ? await readRedis(state.redis, days, table) : readSqlite(state.database, days, table);
      const rows = found.flatMap((row) => usageRow.safeParse({ ...noUsage, ...row }).data ?? []);
      return { rows: rows.sort(compareUsage), unread: found.length - rows.length };
    },
  };
}

/** Returns what a request under way changes in its record. */
export function madeOf({ promptTokens, completionTokens, answered, firstTokenMs, durationMs, cost }: UsageRow): object {
  const told = { ...(answered > 0 && { firstTokenMs }), ...(cost > 0 && { cost }) };
  return { promptTokens, completionTokens, totalMs: durationMs, ...told };
}

/** Adds the counts of `other` to those of `one`. */
export function addUsage<Counts extends UsageCounts>(one: Counts, other: UsageCounts): Counts {
  const sum: Record<UsageMetric, number> & Counts = { ...one };
  for (const metric of usageMetrics) sum[metric] += other[metric];
  return sum;
}

const usageParts = ["keyId", "model", "team", "person", "kind", "machine", "endUser"] as const;

/** Returns a name that rows of keys of one day and the same parts have alike. A model alone may have any character. */
export function nameOfUsage({ day, keyId, team, person, kind, model }: UsageRow): string {
  return `${day} ${keyId}\n${team ?? ""}\n${person ?? ""}\n${kind ?? ""}\n${model ?? ""}`;
}

/** Compares rows by day, key, model and the other parts; rows without a part come first. */
export function compareUsage(one: UsageRow, other: UsageRow): number {
  const differing = usageParts.find((part) => one[part] !== other[part]);
  return compareText(one.day, other.day) || (differing ? compareText(one[differing], other[differing]) : 0);
}

/** The sorted set of all days with usage rows. */
export const redisUsageDaysAt = "usage-days";

/**
 * Returns where each row is added to in Redis: a hash for each table and day, so that an old day expires as a whole. Its fields
 * are `<parts>:<metric>:<model>`, without the last when there is no model. The parts have slashes between, without those at
 * the end that are null. A model may have any character; slashes and colons of the parts are escaped.
 */
export function usageInRedis(rows: readonly UsageRow[]) {
  const all = [];
  for (const row of rows) {
    for (const { at: name, parts, byModel, metrics, keptDays } of tables) {
      if (!row[parts[0]]) continue;
      const told = parts.map((part) => encodeURIComponent(row[part] ?? "")).join("/");
      const first = told.replace(/\/{1,3}$/, "");
      const last = byModel && row.model !== null ? `:${row.model}` : "";
      const fields: [field: string, count: number][] = [];
      for (const metric of metrics) if (row[metric] > 0) fields.push([`${first}:${metric}${last}`, row[metric]]);
      const kept = keptDays === usageKeptDays ? undefined : keptDays;
      all.push({ day: row.day, at: `${name}:${row.day}`, keptDays: kept, fields });
    }
  }
  return all;
}

const usageField = /^(?<parts>[^:]*):(?<metric>[^:]*)(?::(?<model>.*))?$/su;
const daysReply = z.array(z.string());
const fieldsPerPage = 1_000;

/** Reads day by day and in pages, so that no amount of data blocks Redis. */
async function readRedis(redis: RedisConnection, { from, to }: Days, table: UsageTable): Promise<object[]> {
  const reply = await redis.run("tell the days of usage", (client) =>
    client.zrangebylex(redisUsageDaysAt, `[${from}`, `[${to}`),
  );
  const rows: object[] = [];
  for (const day of daysReply.parse(reply)) {
    const fields = await fieldsOf(redis, `${usageTables[table].at}:${day}`);
    rows.push(...rowsOf(day, fields, usageTables[table].parts));
  }
  return rows;
}

/** Reads all fields of a day. A field that HSCAN returns twice has the same count, or a later one. */
async function fieldsOf(redis: RedisConnection, at: string): Promise<Readonly<Record<string, string>>> {
  const fields: Record<string, string> = {};
  let cursor = "0";
  do {
    const [next, reply] = await redis.run("read the usage of a day", (client) =>
      client.hscan(at, cursor, "COUNT", fieldsPerPage),
    );
    for (let each = 0; each < reply.length; each += 2) fields[reply[each] ?? ""] = reply[each + 1] ?? "";
    cursor = next;
  } while (cursor !== "0");
  return fields;
}

function rowsOf(day: string, fields: Readonly<Record<string, string>>, parts: readonly string[]): object[] {
  const rows = new Map<string, Record<string, unknown>>();
  for (const [field, count] of Object.entries(fields)) {
    const { parts: written = "", metric, model = null } = usageField.exec(field)?.groups ?? {};
    if (!isMetric(metric)) continue;
    const row = rows.getOrInsertComputed(JSON.stringify([written, model]), () => {
      const values = written.split("/").map((each, at) => [parts[at], decodeURIComponent(each) || null]);
      return { day, model, ...Object.fromEntries(values) };
    });
    row[metric] = Number(count);
  }
  return [...rows.values()];
}

/** Returns true for a metric of this build. A newer build may store others. */
function isMetric(name: string | undefined): name is UsageMetric {
  return usageMetrics.some((metric) => metric === name);
}

/**
 * A column has an empty text for no part, since the parts are the key of the table. Node's SQLite refuses to read a number
 * that is no safe integer, so tokens and costs are read up to the first of those.
 */
function readSqlite(database: StateDatabase, { from, to }: Days, table: UsageTable): readonly object[] {
  if (table === "keys")
    return database.read(
      "read usage",
      (sql) => sql.all`
        SELECT day, key_id AS keyId, nullif(team, '') AS team, nullif(person, '') AS person, nullif(kind, '') AS kind,
          nullif(model, '') AS model, requests, failed,
          nullif(min(prompt_tokens, ${unsafe}), ${unsafe}) AS promptTokens,
          nullif(min(completion_tokens, ${unsafe}), ${unsafe}) AS completionTokens,
          answered, first_token_ms AS firstTokenMs, duration_ms AS durationMs, nullif(min(cost, ${unsafe}), ${unsafe}) AS cost
        FROM usage WHERE day BETWEEN ${from} AND ${to}`,
    );
  return database.read(
    "read usage",
    (sql) => sql.all`
      SELECT day, iif(part = 'machine', name, NULL) AS machine, iif(part = 'endUser', name, NULL) AS endUser, requests, failed,
        nullif(min(prompt_tokens, ${unsafe}), ${unsafe}) AS promptTokens,
        nullif(min(completion_tokens, ${unsafe}), ${unsafe}) AS completionTokens,
        nullif(min(cost, ${unsafe}), ${unsafe}) AS cost
      FROM usage_parts WHERE part = ${usageTables[table].parts[0]} AND day BETWEEN ${from} AND ${to}`,
  );
}

/** As a BigInt, since SQLite would take a number of this size for a real. */
const unsafe = BigInt(Number.MAX_SAFE_INTEGER) + 1n;
