import { budgetPeriods } from "#shared/keys/key-limits.ts";
import { addUsage, type UsageRow } from "#shared/usage/usage-row.ts";
import { budgetPeriodAt, type Settled } from "../limits/limits.ts";
import type { Spending } from "./books.ts";

interface Ended {
  readonly settled: Settled;
  readonly endedAtMs: number;
}

type Period = ReturnType<typeof budgetPeriodAt>;

/** What ended since the last batch: rows and spendings added up, and holds as they were. */
export class Gathering {
  readonly #rowsMax: number;
  readonly #usage = new Map<string, UsageRow>();
  readonly #spent = new Map<string, Spending>();
  readonly #ended = new Map<string, Ended[]>();
  #periods: { readonly day: string; readonly periods: readonly Period[] } | undefined;
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
    // Neither a day nor the id of a key has a space.
    const name = `${row.day} ${row.keyId} ${row.model === null ? "" : `=${row.model}`}`;
    const before = this.#usage.get(name);
    if (before === undefined && this.#usage.size >= this.#rowsMax) return "full";
    this.#usage.set(name, before === undefined ? row : addUsage(before, row));
    this.#requests += row.requests;
    const tokens = row.promptTokens + row.completionTokens;
    if (tokens === 0) return "counted";
    for (const { name: period, endsAtMs } of this.#periodsOf(row.day)) {
      this.#spend({ keyId: row.keyId, period, endsAtMs, tokens });
    }
    return "counted";
  }

  /** Nearly all that one batch counts is of one day. */
  #periodsOf(day: string): readonly Period[] {
    const before = this.#periods;
    if (before?.day === day) return before.periods;
    const periods = budgetPeriods.map((per) => budgetPeriodAt(per, Date.parse(day)));
    this.#periods = { day, periods };
    return periods;
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
    const before = this.#spent.get(name);
    const tokens = (before?.tokens ?? 0) + spending.tokens;
    this.#spent.set(name, { ...spending, tokens });
  }
}

function spendingName({ keyId, period }: Pick<Spending, "keyId" | "period">): string {
  return `${keyId} ${period}`;
}
