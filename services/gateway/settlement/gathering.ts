import { budgetPeriods } from "#shared/keys/key-limits.ts";
import { usageMetrics, type UsageMetric, type UsageRow } from "#shared/usage/usage-row.ts";
import type { Telling } from "../limits/endings.ts";
import { budgetPeriodAt, needsSeat, type Settled } from "../limits/limits.ts";
import type { Ended, Spending } from "./books.ts";

/** The sum of all rows of one day, key and model. */
type Sum = Pick<UsageRow, "day" | "keyId" | "model"> & Record<UsageMetric, number>;

interface EndedAt extends Settled {
  readonly endedAtMs: number;
  isFree: boolean;
}

/** The ends since the last batch: usage rows added up, and holds one by one. */
export class Gathering {
  readonly #rowsMax: number;
  readonly #usage = new Map<string, Map<string, Map<string | null, Sum>>>();
  readonly #ended: EndedAt[] = [];
  /** The ends of each key that were not reported to the store. */
  readonly #untold = new Map<string, EndedAt[]>();
  readonly #toldOf = new Set<string>();
  #rows = 0;
  #requests = 0;

  constructor(rowsMax: number) {
    this.#rowsMax = rowsMax;
  }

  get isEmpty(): boolean {
    return this.#rows === 0 && this.#ended.length === 0;
  }

  /** The number of requests that its rows count. */
  get requests(): number {
    return this.#requests;
  }

  count(row: UsageRow): "counted" | "full" {
    const ofDay = this.#usage.getOrInsertComputed(row.day, () => new Map());
    const ofKey = ofDay.getOrInsertComputed(row.keyId, () => new Map());
    const sum = ofKey.get(row.model);
    if (sum === undefined) {
      if (this.#rows >= this.#rowsMax) return "full";
      this.#rows += 1;
      ofKey.set(row.model, { ...row });
    } else for (const metric of usageMetrics) sum[metric] += row[metric];
    this.#requests += row.requests;
    return "counted";
  }

  /** Adds an end. Beyond `rowsMax` the end is dropped, without lasting harm: a seat that is not renewed expires. */
  settle({ hold, ran, usedTokens }: Settled, nowMs: number): void {
    if (this.#ended.length >= this.#rowsMax) return;
    const ended = { hold, ran, usedTokens, endedAtMs: nowMs, isFree: false };
    this.#ended.push(ended);
    if (needsSeat(hold.limits)) this.#untoldOf(hold.keyId).push(ended);
  }

  /**
   * Returns at most `endsMax` ends of a key that were not reported to the store. Each is returned once, unless
   * `unheard` is called.
   */
  tell(keyId: string, endsMax: number): Omit<Telling, "batch"> | undefined {
    const untold = this.#untold.get(keyId);
    if (untold === undefined || endsMax <= 0) return undefined;
    const ended = untold.splice(0, endsMax);
    if (untold.length === 0) this.#untold.delete(keyId);
    this.#toldOf.add(keyId);
    return {
      ended,
      heard: () => ended.forEach((each) => (each.isFree = true)),
      unheard: () => this.#untoldOf(keyId).push(...ended),
    };
  }

  /** Returns the keys with at least one end that was reported to the store. */
  toldOf(): readonly string[] {
    return [...this.#toldOf];
  }

  usage(): readonly UsageRow[] {
    return [...this.#usage.values()].flatMap((ofDay) => [...ofDay.values()].flatMap((ofKey) => [...ofKey.values()]));
  }

  /**
   * Returns the tokens spent per key and period. A row counts for its day and for its month, whatever budget its key
   * has now: the key may get another one.
   */
  spent(): readonly Spending[] {
    const spent = new Map<string, Spending>();
    for (const row of this.usage()) {
      const { keyId } = row;
      const tokens = row.promptTokens + row.completionTokens;
      for (const per of tokens === 0 ? [] : budgetPeriods) {
        const { name: period, endsAtMs } = budgetPeriodAt(per, Date.parse(row.day));
        const name = `${keyId} ${period}`;
        spent.set(name, { keyId, period, endsAtMs, tokens: tokens + (spent.get(name)?.tokens ?? 0) });
      }
    }
    return [...spent.values()];
  }

  spentOf(keyId: string, period: string): number {
    let tokens = 0;
    for (const [day, ofDay] of this.#usage) {
      if (!day.startsWith(period)) continue;
      for (const row of ofDay.get(keyId)?.values() ?? []) tokens += row.promptTokens + row.completionTokens;
    }
    return tokens;
  }

  /** Returns all ends after `sinceMs`. */
  endedSince(sinceMs: number): readonly Ended[] {
    return this.#ended.filter(({ endedAtMs }) => endedAtMs > sinceMs);
  }

  #untoldOf(keyId: string): EndedAt[] {
    return this.#untold.getOrInsertComputed(keyId, () => []);
  }
}
