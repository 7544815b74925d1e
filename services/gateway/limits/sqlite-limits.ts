import type { StateDatabase } from "#shared/keys/state-database.ts";
import type { Clock } from "#shared/process/clock.ts";
import { usageKeptDays, type UsageRow } from "#shared/usage/usage.ts";
import type { Admission, Demand, LimitsBook, Settlement, LimitStatus } from "./limits.ts";
import { LocalLimits } from "./local-limits.ts";

interface SqliteLimitsOptions {
  readonly clock: Pick<Clock, "now" | "wall">;
  /** Returns the tokens that a key used in a period and that are not booked yet. */
  readonly unbooked?: (keyId: string, period: string) => number;
}

/**
 * The book of the only gateway of a state folder. What requests hold is in memory, and ends with the process. What they
 * used is in the database; the tokens that a key spent are the sum of its rows. The number of the last settlement needs
 * no table: no gateway outlives its process.
 */
export class SqliteLimitsBook implements LimitsBook {
  readonly local: LocalLimits;
  readonly #database: StateDatabase;
  readonly #settled = new Map<string, number>();

  constructor(database: StateDatabase, { clock, unbooked = () => 0 }: SqliteLimitsOptions) {
    this.#database = database;
    const spent = (keyId: string, period: string): number => this.spentOf(keyId, period) + unbooked(keyId, period);
    this.local = new LocalLimits({ clock, spent });
  }

  admit(demand: Demand): Admission {
    return this.local.admit(demand);
  }

  limitStatus(key: Pick<Demand, "keyId" | "limits">): Promise<LimitStatus> {
    return this.local.limitStatus(key);
  }

  async settle({ gateway, sequence, ended, usage }: Settlement): Promise<{ readonly gateways: number }> {
    if (sequence > (this.#settled.get(gateway) ?? 0)) {
      if (usage.length > 0) this.#add(usage);
      for (const each of ended) this.local.settle(each);
      this.#settled.set(gateway, sequence);
    }
    return { gateways: 1 };
  }

  /** Returns the tokens that a key used in a period (named as by `budgetPeriodAt`), over all models. */
  spentOf(keyId: string, period: string): number {
    const days = JSON.stringify(daysOf(period));
    const row = this.#database.read(
      "sum what a key has used",
      (sql) => sql.get`
        SELECT coalesce(sum(prompt_tokens + completion_tokens), 0) AS tokens
        FROM usage WHERE key_id = ${keyId} AND day IN (SELECT value FROM json_each(${days}))`,
    );
    return Number(row?.["tokens"]);
  }

  #add(usage: readonly UsageRow[]): void {
    const rows = JSON.stringify(usage);
    const kept = `-${usageKeptDays} days`;
    this.#database.change("write down what has ended", (sql) => [
      sql.run`
        INSERT INTO usage
        SELECT value ->> 'day', value ->> 'keyId', coalesce(value ->> 'model', ''), value ->> 'requests',
          value ->> 'failed', value ->> 'promptTokens', value ->> 'completionTokens', value ->> 'answered',
          value ->> 'firstTokenMs', value ->> 'durationMs'
        FROM json_each(${rows}) WHERE true
        ON CONFLICT DO UPDATE SET
          requests = requests + excluded.requests,
          failed = failed + excluded.failed,
          prompt_tokens = prompt_tokens + excluded.prompt_tokens,
          completion_tokens = completion_tokens + excluded.completion_tokens,
          answered = answered + excluded.answered,
          first_token_ms = first_token_ms + excluded.first_token_ms,
          duration_ms = duration_ms + excluded.duration_ms`,
      sql.run`
        DELETE FROM usage WHERE day <
        (SELECT date(max(value ->> 'day'), ${kept}) FROM json_each(${rows}))`,
    ]);
  }
}

/**
 * Returns every day that a period can have, so that each is looked up by the table's key. Days that do not exist have
 * no rows.
 */
function daysOf(period: string): readonly string[] {
  if (period.length === "2026-11-21".length) return [period];
  return Array.from({ length: 31 }, (_, at) => `${period}-${String(at + 1).padStart(2, "0")}`);
}
