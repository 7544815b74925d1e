import { z } from "zod";
import { recordAfterlifeMs } from "#shared/records/key-store.ts";
import { decode, peppersAt } from "#shared/store/redis-key-store.ts";
import { redisSignInsAt } from "#shared/store/session-stores.ts";
import type { SqlTags, StateDatabase } from "#shared/store/state-database.ts";
import type { RedisConnection } from "#shared/process/redis-connection.ts";
import { isOfKey } from "./limits/budgets.ts";
import { keptForMs } from "./limits/book-lua.ts";
import { spentKeptForMs } from "./limits/settlement-lua.ts";

const namesPerPage = 500;
const commandsPerWrite = 2_000;
/** Names that stay during a restore: the trail has the revocations until then. */
const stays = /^(replica|audit)$/;
/** Names that also stay in a store that was emptied. Gateways have booked there since. */
const booked = /^(usage|spent|limits|seats|reservations|written|gateways)/;

const hash = z.record(z.string(), z.string());
const texts = z.array(z.string());
const records = z.tuple([hash, hash, hash, hash, hash, hash, hash, hash, texts, hash, texts, texts, z.string()]);

/** Copies a store in Redis into a new embedded store, all but the usage and the trail. */
export async function copyFromRedis(redis: RedisConnection, to: StateDatabase): Promise<void> {
  for await (const page of namesOf(redis)) {
    await copySpending(redis, to, page);
    const names = page.filter((name) => /^(key|tombstone|limits):/.test(name));
    const found = await redis.pipeline("back up keys", (batch) =>
      names.reduce((all, name) => all.hgetall(name), batch),
    );
    to.change("back up keys", (sql) => names.forEach((name, at) => putHash(sql, name, found[at])));
  }
  const replies = await redis.pipeline("back up records", (batch) =>
    ["site", "machines", "routes", "keeps", "prices", "teams", "people", "alerts"]
      .reduce((all, name) => all.hgetall(name), batch)
      .hkeys("machine-keys")
      .hgetall("machine-seen")
      .zrange("known-models", "0", "-1", "WITHSCORES")
      .zrange(redisSignInsAt, "0", "-1")
      .get(peppersAt),
  );
  const [site, machines, routes, keeps, prices, teams, people, alerts, machineKeys, seen, models, signIns, peppers] =
    records.parse(replies);
  const json = JSON.stringify;
  to.change("back up records", (sql) => [
    site["id"] && sql.run`INSERT INTO site VALUES (1, ${site["id"]}, ${site["noted"] ?? "{}"})`,
    sql.run`INSERT INTO machines SELECT key, value FROM json_each(${json(machines)})`,
    sql.run`INSERT INTO routes SELECT key, value FROM json_each(${json(routes)})`,
    sql.run`INSERT INTO keeps SELECT key, value FROM json_each(${json(keeps)})`,
    sql.run`INSERT INTO prices SELECT key, value FROM json_each(${json(prices)})`,
    sql.run`INSERT INTO teams SELECT key, value FROM json_each(${json(teams)})`,
    sql.run`INSERT INTO people SELECT key, value FROM json_each(${json(people)})`,
    sql.run`INSERT INTO alerts SELECT key, value FROM json_each(${json(alerts)})`,
    sql.run`INSERT INTO machine_keys SELECT value, ${json(seen)} ->> ('$.' || value) FROM json_each(${json(machineKeys)})`,
    ...models.map((id, at) => at % 2 || sql.run`INSERT INTO known_models VALUES (${id}, ${Number(models[at + 1])})`),
    sql.run`INSERT INTO sign_ins SELECT key + 1, value ->> '$.at', value FROM json_each(${json(signIns)})`,
    sql.run`INSERT INTO pepper VALUES (1, ${peppers})`,
  ]);
}

/** Copies what books spent. What keys spent is the sum of their usage. */
async function copySpending(redis: RedisConnection, to: StateDatabase, names: readonly string[]): Promise<void> {
  const spent = names.flatMap((name) => {
    const [kind, ...parts] = name.split(":");
    const [book, period = ""] = [parts.slice(0, -1).join(":"), parts.at(-1)];
    const unit = kind === "spent-money" ? "money" : "tokens";
    return kind?.startsWith("spent") === true && !isOfKey(book) ? [{ name, book, unit, period }] : [];
  });
  const found = await redis.pipeline("back up spending", (batch) =>
    spent.reduce((all, { name }) => all.get(name), batch),
  );
  to.change("back up spending", (sql) => {
    for (const [at, { book, unit, period }] of spent.entries())
      sql.run`INSERT OR REPLACE INTO spending VALUES (${book}, ${unit}, ${period}, ${Number(found[at])})`;
  });
}

/** Redis may report a name twice. The record of a key stands in place of its tombstone. */
function putHash(sql: SqlTags, name: string, found: unknown): void {
  const fields = Object(decode(found));
  const [id, text, expiresAt] = [name.slice(name.indexOf(":") + 1), JSON.stringify(fields), Number(fields.expiresAt)];
  if (text === "{}") return;
  if (name.startsWith("key:")) sql.run`INSERT OR REPLACE INTO keys VALUES (${id}, ${expiresAt}, ${text})`;
  else if (name.startsWith("tombstone:")) sql.run`INSERT OR IGNORE INTO keys VALUES (${id}, ${expiresAt}, ${text})`;
  else sql.run`INSERT OR REPLACE INTO extra VALUES (${name}, ${text})`;
}

/** Copies an embedded store into Redis, all but the usage, and founds the store at the end. */
export async function copyToRedis(from: StateDatabase, redis: RedisConnection): Promise<void> {
  // One command a row, in this order. `|| ''` makes a text of a JSON value.
  const commands = from.read(
    "read a backup",
    (sql) => sql.iterate`
      WITH spent AS (
        SELECT CASE unit WHEN 'money' THEN 'spent-money:' ELSE 'spent:' END || book || ':' || period AS name, amount,
          unixepoch(CASE length(period) WHEN 10 THEN date(period, '+1 day') ELSE date(period || '-01', '+1 month') END)
          * 1000 AS ends_at_ms
        FROM spending)
      SELECT json_array('hset', 'site', 'id', id, 'noted', noted) AS command FROM site
      UNION ALL SELECT json_array('sadd', 'keys', id) FROM keys WHERE record ->> '$.scopes' <> ''
      UNION ALL SELECT json_array('hset', 'key:' || keys.id, key, (record -> fullkey) || '') FROM keys, json_each(record)
        WHERE record ->> '$.scopes' <> ''
      UNION ALL SELECT json_array('pexpireat', 'key:' || id, expires_at + ${recordAfterlifeMs}) FROM keys
      UNION ALL SELECT json_array('hset', 'tombstone:' || id, 'digest', (record -> '$.digest') || '', 'expiresAt', expires_at)
        FROM keys WHERE record ->> '$.revokedAt' IS NULL
      UNION ALL SELECT json_array('hset', 'machines', name, record) FROM machines
      UNION ALL SELECT json_array('hset', 'machine-keys', public_key, '') FROM machine_keys
      UNION ALL SELECT json_array('hset', 'machine-keys', record ->> '$.publicKey', name)
        FROM machines WHERE record ->> '$.publicKey' <> ''
      UNION ALL SELECT json_array('hset', 'machine-joins', record ->> '$.join.id', name)
        FROM machines WHERE record ->> '$.join.id' <> ''
      UNION ALL SELECT json_array('hset', 'machine-seen', public_key, seen_at) FROM machine_keys WHERE seen_at > 0
      UNION ALL SELECT json_array('hset', 'routes', name, record) FROM routes
      UNION ALL SELECT json_array('hset', 'keeps', name, record) FROM keeps
      UNION ALL SELECT json_array('hset', 'prices', name, record) FROM prices
      UNION ALL SELECT json_array('hset', 'teams', name, record) FROM teams
      UNION ALL SELECT json_array('hset', 'people', name, record) FROM people
      UNION ALL SELECT json_array('hset', 'alerts', name, record) FROM alerts
      UNION ALL SELECT json_array('zadd', 'known-models', seen_at, id) FROM known_models
      UNION ALL SELECT json_array('zadd', 'sign-ins', at, entry) FROM sign_ins
      UNION ALL SELECT json_array('hset', name, key, json_each.value) FROM extra, json_each(extra.value)
        WHERE name LIKE 'limits:%'
      UNION ALL SELECT json_array('pexpire', name, ${keptForMs}) FROM extra WHERE name LIKE 'limits:%'
      UNION ALL SELECT json_array('incrby', name, amount) FROM spent
      UNION ALL SELECT json_array('pexpireat', name, ends_at_ms + ${spentKeptForMs}) FROM spent
      UNION ALL SELECT json_array('xadd', 'restored', '*', 'key', key_id, 'entry', entry) FROM audit
      UNION ALL SELECT json_array('rename', 'restored', 'audit')
      UNION ALL SELECT json_array('set', 'pepper', fingerprint) FROM pepper`,
  );
  let batch: [string, ...string[]][] = [];
  const write = async (): Promise<void> => {
    await redis.pipeline("restore records", (all) => batch.reduce((each, command) => each.call(...command), all));
    batch = [];
  };
  for (const { command } of commands) {
    batch.push(JSON.parse(String(command)));
    if (batch.length === commandsPerWrite) await write();
  }
  await write();
}

/** Removes what a restore replaces, the peppers first: gateways judge no key from here on. */
export async function clearRedis(
  redis: RedisConnection,
  { wasEmptied }: { readonly wasEmptied: boolean },
): Promise<void> {
  await redis.run("begin a restore", (client) => client.del(peppersAt));
  for await (const names of namesOf(redis)) {
    const cleared = names.filter((name) => !stays.test(name) && !(wasEmptied && booked.test(name)));
    if (cleared.length > 0) await redis.run("remove what a backup replaces", (client) => client.unlink(cleared));
  }
}

/** Yields all names of the store, page by page and without their prefix. */
async function* namesOf(redis: RedisConnection): AsyncGenerator<string[]> {
  let cursor: string | undefined;
  while (cursor !== "0") {
    const from = cursor ?? "0";
    const { next, names } = await redis.run("list its names", async (client) => {
      const { keyPrefix = "" } = client.options;
      const [after, found] = await client.scan(from, "MATCH", `${keyPrefix}*`, "COUNT", namesPerPage);
      return { next: after, names: found.map((name) => name.slice(keyPrefix.length)) };
    });
    yield names;
    cursor = next;
  }
}
