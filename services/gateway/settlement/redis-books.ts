import { z } from "zod";
import type { RedisConnection } from "#shared/process/redis-connection.ts";
import { RedisScript } from "#shared/process/redis-script.ts";
import { usageAt, usageFields } from "#shared/usage/redis-usage.ts";
import type { UsageRow } from "#shared/usage/usage-row.ts";
import { needsSeat, seatLivesMs, type Hold } from "../limits/limits.ts";
import { spentAt } from "../limits/redis-limits.ts";
import { batchName, type Batch, type Books, type Spending } from "./books.ts";
import { writeBatchLua } from "./redis-books-script.ts";

const writeBatchScript = new RedisScript(writeBatchLua);
const gatewayCount = z.int().min(1);

/** The books of all gateways. One script call writes a batch, and each batch of a gateway is added once. */
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
      name: batchName(batch),
      seatLivesMs: this.#seatLivesMs,
      settled: settledEntries(batch),
      renewed: batch.renewed.filter(({ limits }) => needsSeat(limits)).map(renewedEntry),
      spent: batch.spent.map(spentEntry),
      usage: usageEntries(batch.usage),
    });
    const reply = await writeBatchScript.run(this.#redis, "write down what has ended", text);
    return { gateways: gatewayCount.parse(reply) };
  }
}

/**
 * The settlement of one key under the same limits: the seats to free, and the charge on its buckets. A negative charge
 * is given back.
 */
interface SettledEntry {
  readonly keyId: string;
  readonly requestsPerMinute: number | undefined;
  readonly tokensPerMinute: number | undefined;
  readonly seats: string[];
  /** True if the limits of the key may keep spent tokens under the name of this batch. */
  readonly wasTold: boolean;
  requests: number;
  tokens: number;
}

function settledEntries({ settled, toldOf }: Batch): readonly SettledEntry[] {
  const entries = new Map<string, SettledEntry>();
  const told = new Set(toldOf);
  const entryOf = (keyId: string, { requestsPerMinute, tokensPerMinute }: Hold["limits"]): SettledEntry =>
    entries.getOrInsertComputed(`${keyId} ${requestsPerMinute} ${tokensPerMinute}`, () => {
      const wasTold = told.delete(keyId);
      return { keyId, requestsPerMinute, tokensPerMinute, seats: [], wasTold, requests: 0, tokens: 0 };
    });
  // Most ends of a batch belong to one key.
  let latest: { readonly hold: Hold; readonly entry: SettledEntry } | undefined;
  for (const { hold, ran, usedTokens, isFree = false } of settled) {
    const isSame = latest?.hold.keyId === hold.keyId && latest.hold.limits === hold.limits;
    const entry = isSame && latest !== undefined ? latest.entry : entryOf(hold.keyId, hold.limits);
    latest = { hold, entry };
    if (needsSeat(hold.limits) && !isFree) entry.seats.push(hold.seat);
    if (!ran) entry.requests -= 1;
    entry.tokens += (ran ? usedTokens : 0) - hold.tokens;
  }
  for (const keyId of told) entryOf(keyId, {});
  return [...entries.values()].filter(changesAnything);
}

function changesAnything({ seats, wasTold, requests, tokens }: SettledEntry): boolean {
  return seats.length > 0 || wasTold || requests !== 0 || tokens !== 0;
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
