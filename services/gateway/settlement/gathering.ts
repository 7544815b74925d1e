import { budgetPeriods } from "#shared/keys/key-limits.ts";
import { addUsage, type UsageRow } from "#shared/usage/usage-row.ts";
import { budgetPeriodAt, type Settled } from "../limits/limits.ts";
import type { Spending } from "./books.ts";

interface Ended {
  readonly settled: Settled;
  readonly endedAtMs: number;
}

/** What ended since the last batch: rows and spendings added up, and holds as they were. */
export class Gathering {
  readonly #rowsMax: number;
  readonly #usage = new Map<string, UsageRow>();
  readonly #spent = new Map<string, Spending>();
  readonly #ended = new Map<string, Ended[]>();
  #endings = 0;
  #requests = 0;

  constructor(rowsMax: number) {
    this.#rowsMax = rowsMax;
  }

  get isEmpty(): boolean {
    return this.#usage.size === 0 && this.#endings === 0;
  }

  /** How many requests its rows tell of. */
  get requests(): number {
    return this.#requests;
  }

  /** What a row used is spent of its day and of its month, whatever budget its key has now: it may get another one. */
  count(row: UsageRow): "counted" | "full" {
    const name = JSON.stringify([row.day, row.keyId, row.model]);
    const before = this.#usage.get(name);
    if (before === undefined && this.#usage.size >= this.#rowsMax) return "full";
    this.#usage.set(name, before === undefined ? row : addUsage(before, row));
    this.#requests += row.requests;
    const tokens = row.promptTokens + row.completionTokens;
    for (const per of tokens === 0 ? [] : budgetPeriods) {
      const { name: period, endsAtMs } = budgetPeriodAt(per, Date.parse(row.day));
      this.#spend({ keyId: row.keyId, period, endsAtMs, tokens });
    }
    return "counted";
  }

  /** What finds no place is not missed for long: a seat that is not renewed lapses. */
  settle(settled: Settled, nowMs: number): void {
    if (this.#endings >= this.#rowsMax) return;
    this.#endings += 1;
    this.#ended.getOrInsertComputed(settled.hold.keyId, () => []).push({ settled, endedAtMs: nowMs });
  }

  usage(): readonly UsageRow[] {
    return [...this.#usage.values()];
  }

  spent(): readonly Spending[] {
    return [...this.#spent.values()];
  }

  spentOf(keyId: string, period: string): number {
    return this.#spent.get(spendingName({ keyId, period }))?.tokens ?? 0;
  }

  /** All that ended after a moment. */
  settledSince(sinceMs: number): readonly Settled[] {
    return [...this.#ended.values()].flat().flatMap((each) => (each.endedAtMs > sinceMs ? [each.settled] : []));
  }

  endedOf(keyId: string): readonly Settled[] {
    return this.#ended.get(keyId)?.map(({ settled }) => settled) ?? [];
  }

  #spend(spending: Spending): void {
    const name = spendingName(spending);
    const before = this.#spent.get(name)?.tokens ?? 0;
    this.#spent.set(name, { ...spending, tokens: before + spending.tokens });
  }
}

function spendingName({ keyId, period }: Pick<Spending, "keyId" | "period">): string {
  return `${keyId} ${period}`;
}
