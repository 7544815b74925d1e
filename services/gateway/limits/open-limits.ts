import type { Book } from "#shared/records/book.ts";
import type { StateStore } from "#shared/store/open-key-store.ts";
import type { SqlTags, StateDatabase } from "#shared/store/state-database.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { keptRequestsDefault, type KeptRequests } from "#shared/requests/request-records.ts";
import { madeOf, usageKeptDays, usageTables } from "#shared/usage/usage.ts";
import {
  emptyReservation,
  type Admission,
  type Demand,
  type Reservation,
  type Limits,
  type LimitsBook,
  type LimitStatus,
  type Settlement,
  type Settling,
} from "./limits.ts";
import { LocalLimits } from "./local-limits.ts";
import { RedisLimitsBook, SharedLimits } from "./redis-limits.ts";
import { Settlements } from "./settlements.ts";

interface LimitsOptions {
  /** The token of this boot of this gateway. */
  readonly gateway: string;
  readonly clock: Clock;
  readonly log: Pick<Log, "info" | "warn" | "error">;
  /** How many records of requests the store keeps, and for how long. */
  readonly kept: KeptRequests;
}

export interface OpenedLimits {
  readonly limits: Limits;
  readonly settlements: Settlements;
  /** The number of gateways of the site, as the book last reported it. */
  readonly site: { readonly gateways: number };
  /** Called once the gateway listens: a second one on the same state folder fails before, and books nothing of the first. */
  readonly begin: () => void;
}

/**
 * Opens the book of limits beside the keys themselves. It is in Redis for all gateways together, or in this process and
 * its database for the only gateway.
 */
export function openLimits(state: StateStore, options: LimitsOptions): OpenedLimits {
  return state.kind === "redis" ? openShared(state.redis, options) : openEmbedded(state.database, options);
}

function openShared(redis: Extract<StateStore, { kind: "redis" }>["redis"], options: LimitsOptions): OpenedLimits {
  const { clock, kept } = options;
  const book = new RedisLimitsBook(redis, { clock, kept });
  // Read for keys that this gateway never asked Redis about. For all others, the last answer of Redis reported the spent
  // tokens.
  const local: LocalLimits = new LocalLimits({ clock, spent: (keyId, period) => settlements.spentOf(keyId, period) });
  const settlements: Settlements = new Settlements({ ...options, book, local });
  const limits = new SharedLimits({ book, local, settlements });
  return { limits, settlements, site: local, begin: () => undefined };
}

function openEmbedded(database: StateDatabase, options: LimitsOptions): OpenedLimits {
  const book: SqliteLimitsBook = new SqliteLimitsBook(database, {
    clock: options.clock,
    kept: options.kept,
    unbooked: (keyId, period) => settlements.spentOf(keyId, period),
  });
  const settlements: Settlements = new Settlements({ ...options, book, local: book.local, gatherMs: 0 });
  return { limits: book, settlements, site: book.local, begin: () => book.bookRunning() };
}

interface SqliteLimitsOptions {
  readonly clock: Pick<Clock, "now" | "wall">;
  readonly kept?: KeptRequests;
  /** Returns the tokens that a key used in a period and that are not booked yet. */
  readonly unbooked?: (keyId: string, period: string) => number;
}

/**
 * The book of the only gateway of a state folder. What requests hold is in memory, and ends with the process. What they
 * used is in the database; the tokens that a key spent are the sum of its rows. The number of the last settlement needs
 * no table: no gateway outlives its process.
 */
export class SqliteLimitsBook implements Limits, LimitsBook {
  readonly local: LocalLimits;
  readonly #database: StateDatabase;
  readonly #settled = new Map<string, number>();
  readonly #clock: Pick<Clock, "wall">;
  readonly #kept: KeptRequests;

  constructor(database: StateDatabase, { clock, kept = keptRequestsDefault, unbooked = () => 0 }: SqliteLimitsOptions) {
    this.#database = database;
    this.#clock = clock;
    this.#kept = kept;
    const spent = (keyId: string, period: string): number => this.spentOf(keyId, period) + unbooked(keyId, period);
    this.local = new LocalLimits({ clock, spent });
  }

  async admit(demand: Demand): Promise<Admission> {
    return this.local.admit(demand);
  }

  occupy(demand: Pick<Demand, "books" | "seat">): Reservation {
    const reservation = emptyReservation(demand, "here");
    this.local.occupy(reservation);
    return reservation;
  }

  limitStatus(books: readonly Book[]): Promise<LimitStatus> {
    return this.local.limitStatus(books);
  }

  /** Books what answers had used that were under way when the gateway before was killed. */
  bookRunning(): void {
    this.#database.change("book answers that were cut off", (sql) => {
      for (const { usage } of sql.all`SELECT usage FROM running`) addUsageRows(sql, `[${String(usage)}]`);
      sql.run`
        INSERT INTO requests (id, at, record)
        SELECT request ->> 'id', request ->> 'at', json_patch(request, made) FROM running WHERE request IS NOT NULL`;
      sql.run`DELETE FROM running`;
    });
  }

  async settle(settlement: Settlement): Promise<Settling> {
    const { gateway, sequence, ended, growing, demands, usage, running } = settlement;
    if (sequence > (this.#settled.get(gateway) ?? 0)) {
      if (usage.length > 0 || running.length > 0) this.#add(settlement);
      for (const each of ended) this.local.settle(each);
      this.#settled.set(gateway, sequence);
    }
    const grown = growing.map((each) => this.local.grow(each));
    return { gateways: 1, grown, admissions: demands.map((each) => this.local.admit(each)) };
  }

  /** Returns the tokens that a key used in a period (named as by `budgetPeriodAt`), over all models. */
  spentOf(keyId: string, period: string): number {
    const days = JSON.stringify(daysOf(period));
    const row = this.#database.read(
      "sum what a key has used",
      (sql) => sql.get`
        SELECT min(coalesce(sum(min(prompt_tokens + completion_tokens, ${tokensMax})), 0), ${tokensMax}) AS tokens
        FROM usage WHERE key_id = ${keyId} AND day IN (SELECT value FROM json_each(${days}))`,
    );
    return Number(row?.["tokens"]);
  }

  #add({ usage, requests, running, over }: Pick<Settlement, "usage" | "requests" | "running" | "over">): void {
    const rows = JSON.stringify(usage);
    const records = `[${requests.join(",")}]`;
    const kept = `-${usageKeptDays} days`;
    const { max, ms } = this.#kept;
    this.#database.change("write down what has ended", (sql) => [
      addUsageRows(sql, rows),
      sql.run`
        INSERT INTO running (id, usage, made, request)
        SELECT value ->> 'id', value ->> 'usage', value ->> 'made', value ->> 'request'
        FROM json_each(${JSON.stringify(running.map((each) => ({ ...each, made: madeOf(each.usage) })))}) WHERE true
        ON CONFLICT DO UPDATE SET usage = excluded.usage, made = excluded.made`,
      sql.run`DELETE FROM running WHERE id IN (SELECT value FROM json_each(${JSON.stringify(over)}))`,
      sql.run`
        DELETE FROM usage WHERE day <
        (SELECT date(max(value ->> 'day'), ${kept}) FROM json_each(${rows}))`,
      ...[usageTables.machines, usageTables.users].map(
        ({ parts, keptDays }) => sql.run`
          DELETE FROM usage_parts WHERE part = ${parts[0]} AND day <
          (SELECT date(max(value ->> 'day'), ${`-${keptDays} days`}) FROM json_each(${rows}))`,
      ),
      sql.run`
        INSERT INTO requests (id, at, record)
        SELECT value ->> 'id', value ->> 'at', value FROM json_each(${records})`,
      sql.run`
        DELETE FROM requests WHERE sequence < max(
          (SELECT coalesce(max(sequence), 0) + 1 - ${max} FROM requests),
          (SELECT coalesce(min(sequence), 0) FROM requests WHERE at >= ${Math.floor(this.#clock.wall() - ms)}))`,
    ]);
  }
}

/** The most tokens that a sum tells. */
const tokensMax = Number.MAX_SAFE_INTEGER;
/** The most tokens that a row holds. It is left out of lists then, and grows no further. */
const tokensKeptMax = BigInt(tokensMax) + 1n;

/** Adds rows to the tables of usage. A row of version 0.2.0 has neither cost nor the newer parts. */
function addUsageRows(sql: SqlTags, rows: string): void {
  sql.run`
    INSERT INTO usage
    SELECT value ->> 'day', value ->> 'keyId', coalesce(value ->> 'team', ''), coalesce(value ->> 'person', ''),
      coalesce(value ->> 'kind', ''), coalesce(value ->> 'model', ''), value ->> 'requests',
      value ->> 'failed', value ->> 'promptTokens', value ->> 'completionTokens', value ->> 'answered',
      value ->> 'firstTokenMs', value ->> 'durationMs', coalesce(value ->> 'cost', 0)
    FROM json_each(${rows}) WHERE value ->> 'keyId' <> ''
    ON CONFLICT DO UPDATE SET
      requests = requests + excluded.requests,
      failed = failed + excluded.failed,
      prompt_tokens = min(prompt_tokens + excluded.prompt_tokens, ${tokensKeptMax}),
      completion_tokens = min(completion_tokens + excluded.completion_tokens, ${tokensKeptMax}),
      answered = answered + excluded.answered,
      first_token_ms = first_token_ms + excluded.first_token_ms,
      duration_ms = duration_ms + excluded.duration_ms,
      cost = min(cost + excluded.cost, ${tokensKeptMax})`;
  sql.run`
    INSERT INTO usage_parts
    SELECT part.value, used.value ->> 'day', used.value ->> part.value, used.value ->> 'requests', used.value ->> 'failed',
      used.value ->> 'promptTokens', used.value ->> 'completionTokens', coalesce(used.value ->> 'cost', 0)
    FROM json_each(${rows}) AS used, json_each('["machine","endUser"]') AS part WHERE used.value ->> part.value IS NOT NULL
    ON CONFLICT DO UPDATE SET
      requests = requests + excluded.requests,
      failed = failed + excluded.failed,
      prompt_tokens = min(prompt_tokens + excluded.prompt_tokens, ${tokensKeptMax}),
      completion_tokens = min(completion_tokens + excluded.completion_tokens, ${tokensKeptMax}),
      cost = min(cost + excluded.cost, ${tokensKeptMax})`;
}

/**
 * Returns every day that a period can have, so that each is looked up by the table's key. Days that do not exist have
 * no rows.
 */
function daysOf(period: string): readonly string[] {
  if (period.length === "2026-11-21".length) return [period];
  return Array.from({ length: 31 }, (_, at) => `${period}-${String(at + 1).padStart(2, "0")}`);
}
