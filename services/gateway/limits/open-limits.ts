import type { Book } from "#shared/records/book.ts";
import type { StateStore } from "#shared/store/open-key-store.ts";
import type { SqlTags, StateDatabase } from "#shared/store/state-database.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { keptRequestsDefault, type KeptRequests } from "#shared/requests/request-records.ts";
import { madeOf, usageKeptDays, usageTables } from "#shared/usage/usage.ts";
import { type BudgetUnit, isOfKey, type Spent } from "./budgets.ts";
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
import { RedisLimitsBook, spentAt } from "./redis-limits.ts";
import { SharedLimits } from "./shared-limits.ts";
import { Settlements } from "./settlements.ts";

interface LimitsOptions {
  /** The token of this boot of this gateway. */
  readonly gateway: string;
  readonly clock: Clock;
  readonly log: Pick<Log, "info" | "warn" | "error">;
  /** How many records of requests the store keeps, and for how long. */
  readonly kept: KeptRequests;
  readonly tellMachines: () => void;
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
  const local: LocalLimits = new LocalLimits({ clock, spent: (...of) => settlements.spentOf(...of) });
  const settlements: Settlements = new Settlements({ ...options, book, local });
  const limits = new SharedLimits({ book, local, settlements });
  return { limits, settlements, site: local, begin: () => undefined };
}

function openEmbedded(database: StateDatabase, options: LimitsOptions): OpenedLimits {
  const book: SqliteLimitsBook = new SqliteLimitsBook(database, {
    clock: options.clock,
    kept: options.kept,
    unbooked: (...of) => settlements.spentOf(...of),
  });
  const settlements: Settlements = new Settlements({ ...options, book, local: book.local, gatherMs: 0 });
  return { limits: book, settlements, site: book.local, begin: () => book.bookRunning() };
}

const namesPerRead = 1_000;

/** Returns what books have used of their budgets, as far as it is booked, in the order of the question. */
export async function readSpent(
  state: StateStore,
  asked: readonly Omit<Spent, "amount">[],
  clock: Pick<Clock, "now" | "wall">,
): Promise<readonly number[]> {
  if (state.kind === "sqlite") {
    const book = new SqliteLimitsBook(state.database, { clock });
    return asked.map((each) => book.spentOf(each.book, each.period, each.unit));
  }
  const names = asked.map(({ book, period, unit }) => spentAt(book, period, unit));
  const spent: number[] = [];
  for (let at = 0; at < names.length; at += namesPerRead) {
    const page = names.slice(at, at + namesPerRead);
    spent.push(...(await state.redis.run("tell what was spent", (redis) => redis.mget(page))).map(Number));
  }
  return spent;
}

interface SqliteLimitsOptions {
  readonly clock: Pick<Clock, "now" | "wall">;
  readonly kept?: KeptRequests;
  /** Returns what a book used in a period and what is not booked yet. */
  readonly unbooked?: (bookId: string, period: string, unit: BudgetUnit) => number;
}

/**
 * The book of the only gateway of a state folder. What requests hold is in memory, and ends with the process. What they
 * used is in the database. What a key spent is the sum of its rows; the table `spending` has what other books spent. The
 * number of the last settlement needs no table: no gateway outlives its process.
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
    this.local = new LocalLimits({ clock, spent: (...of) => this.spentOf(...of) + unbooked(...of) });
  }

  async admit(demand: Demand): Promise<Admission> {
    return this.local.admit(demand);
  }

  occupy(demand: Omit<Demand, "tokens" | "promptTokens">): Reservation {
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
      for (const { usage, spent } of sql.all`SELECT usage, spent FROM running`) {
        addUsageRows(sql, `[${String(usage)}]`);
        if (spent !== null) addSpending(sql, String(spent));
      }
      sql.run`
        INSERT INTO requests (id, at, record)
        SELECT request ->> 'id', request ->> 'at', json_patch(request, made) FROM running WHERE request IS NOT NULL`;
      sql.run`DELETE FROM running`;
    });
  }

  async settle(settlement: Settlement): Promise<Settling> {
    const { gateway, sequence, ended, growing, demands, usage, spent, running } = settlement;
    if (sequence > (this.#settled.get(gateway) ?? 0)) {
      if (usage.length + spent.length + running.length > 0) this.#add(settlement);
      for (const each of ended) this.local.settle(each);
      this.#settled.set(gateway, sequence);
    }
    const grown = growing.map((each) => this.local.grow(each));
    return { gateways: 1, grown, admissions: demands.map((each) => this.local.admit(each)) };
  }

  /** Returns what a book used in a period (named as by `budgetPeriodAt`), over all models. */
  spentOf(bookId: string, period: string, unit: BudgetUnit = "tokens"): number {
    const days = JSON.stringify(daysOf(period));
    const row = this.#database.read("sum what was spent", (sql) =>
      isOfKey(bookId)
        ? sql.get`
            SELECT min(coalesce(sum(min(
              CASE ${unit} WHEN 'money' THEN cost ELSE prompt_tokens + completion_tokens END, ${tokensMax})), 0),
              ${tokensMax}) AS spent
            FROM usage WHERE key_id = ${bookId} AND day IN (SELECT value FROM json_each(${days}))`
        : sql.get`
            SELECT min(amount, ${tokensMax}) AS spent FROM spending
            WHERE book = ${bookId} AND unit = ${unit} AND period = ${period}`,
    );
    return Number(row?.["spent"] ?? 0);
  }

  #add({ usage, spent, requests, running, over }: Settlement): void {
    const rows = JSON.stringify(usage);
    const records = `[${requests.join(",")}]`;
    const kept = `-${usageKeptDays} days`;
    const { max, ms } = this.#kept;
    this.#database.change("write down what has ended", (sql) => [
      addUsageRows(sql, rows),
      addSpending(sql, JSON.stringify(spent)),
      sql.run`
        INSERT INTO running (id, usage, made, request, spent)
        SELECT value ->> 'id', value ->> 'usage', value ->> 'made', value ->> 'request', value ->> 'spent'
        FROM json_each(${JSON.stringify(running.map((each) => ({ ...each, made: madeOf(each.usage) })))}) WHERE true
        ON CONFLICT DO UPDATE SET usage = excluded.usage, made = excluded.made, spent = excluded.spent`,
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

/** Adds what books spent, and forgets the periods that ended before the last month. */
function addSpending(sql: SqlTags, spent: string): void {
  sql.run`
    INSERT INTO spending
    SELECT value ->> 'book', value ->> 'unit', value ->> 'period', value ->> 'amount' FROM json_each(${spent}) WHERE true
    ON CONFLICT DO UPDATE SET amount = min(amount + excluded.amount, ${tokensKeptMax})`;
  sql.run`
    DELETE FROM spending WHERE period <
    (SELECT strftime('%Y-%m', max(substr(value ->> 'period', 1, 7)) || '-01', '-1 month') FROM json_each(${spent}))`;
}

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
