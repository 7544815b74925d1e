import { z } from "zod";
import type { RedisConnection } from "#shared/process/redis-connection.ts";
import { RedisScript } from "#shared/process/redis-script.ts";
import { usageAt, usageFields } from "#shared/usage/redis-usage.ts";
import type { UsageRow } from "#shared/usage/usage-row.ts";
import { needsSeat, seatLivesMs, type Hold, type Settled } from "../limits/limits.ts";
import { spentAt } from "../limits/redis-limits.ts";
import type { Batch, Books, Spending } from "./books.ts";
import { writeBatchLua } from "./redis-books-script.ts";

const writeBatchScript = new RedisScript(writeBatchLua);
const gatewayCount = z.int().min(1);

/** The books of all gateways. A batch is one script, and each of a gateway's batches is added once. */
export class RedisBooks implements Books {
  readonly #redis: RedisConnection;
  readonly #seatLivesMs: number;

  constructor(redis: RedisConnection, options: { readonly seatLivesMs?: number } = {}) {
    this.#redis = redis;
    this.#seatLivesMs = options.seatLivesMs ?? seatLivesMs;
  }

  async write(batch: Batch): Promise<{ readonly gateways: number }> {
    const text = JSON.stringify({
      gateway: batch.gateway,
      sequence: batch.sequence,
      seatLivesMs: this.#seatLivesMs,
      settled: batch.settled.filter(changesAnything).map(settledEntry),
      renewed: batch.renewed.filter(({ limits }) => needsSeat(limits)).map(renewedEntry),
      spent: batch.spent.map(spentEntry),
      usage: usageEntries(batch.usage),
    });
    const reply = await writeBatchScript.run(this.#redis, "write down what has ended", text);
    return { gateways: gatewayCount.parse(reply) };
  }
}

function changesAnything({ hold, ran, usedTokens }: Settled): boolean {
  return needsSeat(hold.limits) || !ran || usedTokens !== hold.tokens;
}

function settledEntry({ hold, ran, usedTokens }: Settled) {
  const { requestsPerMinute, tokensPerMinute } = hold.limits;
  return {
    keyId: hold.keyId,
    seat: hold.seat,
    requestsPerMinute,
    tokensPerMinute,
    requests: ran ? 0 : -1,
    tokens: (ran ? usedTokens : 0) - hold.tokens,
  };
}

function renewedEntry({ keyId, seat, limits, budgetTokens }: Hold) {
  return { keyId, seat, hasBudget: limits.budget !== undefined, budgetTokens };
}

function spentEntry({ keyId, period, endsAtMs, tokens }: Spending) {
  return { at: spentAt(keyId, period), endsAtMs, tokens: String(tokens) };
}

function usageEntries(rows: readonly UsageRow[]) {
  const byDay = Map.groupBy(rows, ({ day }) => day);
  return [...byDay].map(([day, ofDay]) => ({
    day,
    at: usageAt(day),
    fields: ofDay.flatMap(usageFields).map(([field, count]) => [field, String(count)]),
  }));
}
