import type { Asked } from "./ask-over-http.ts";
import type { Outcome } from "./judge-answer.ts";

const casesKeptMax = 20;

/** What became of every request of a load: each is entered once. */
export class LoadLedger {
  readonly #outcomes = new Map<Outcome, number>();
  readonly #told = new Map<string, number>();
  /** For each of these, what the first of them was told in words. */
  readonly #words = new Map<string, string>();
  readonly #firstsMs: number[] = [];
  readonly #totalsMs: number[] = [];
  readonly #refusalsMs: number[] = [];
  readonly #cutsMs: number[] = [];
  /** The first of those that did not come whole, to be shown when a test fails. */
  readonly cases: Asked[] = [];
  sent = 0;
  /** Of whose answer something has come. */
  begun = 0;
  settled = 0;
  tokensServed = 0;
  /** Exact answers with which another machine went on. */
  continued = 0;
  /** Of refusals, those that did not say when to come back. */
  refusedWithoutRetryAfter = 0;

  enter(asked: Asked): void {
    const { outcome, received, chat } = asked;
    this.settled += 1;
    this.#outcomes.set(outcome, this.of(outcome) + 1);
    if (outcome === "exact") {
      this.tokensServed += chat.tokens;
      if (asked.continued) this.continued += 1;
      this.#firstsMs.push(asked.firstMs);
      this.#totalsMs.push(asked.totalMs);
      return;
    }
    if (this.cases.length < casesKeptMax) this.cases.push(asked);
    const what = `${outcome} ${outcome === "refused" ? `${received.status} ` : ""}${received.code ?? asked.why ?? ""}`;
    const kind = what.trim();
    this.#told.set(kind, (this.#told.get(kind) ?? 0) + 1);
    if (received.message !== undefined && !this.#words.has(kind)) this.#words.set(kind, received.message);
    if (outcome === "cut short and told") this.#cutsMs.push(asked.totalMs);
    if (outcome !== "refused") return;
    this.#refusalsMs.push(asked.totalMs);
    if (received.retryAfter === undefined) this.refusedWithoutRetryAfter += 1;
  }

  of(outcome: Outcome): number {
    return this.#outcomes.get(outcome) ?? 0;
  }

  /** Of those that did not come whole, how many ended in which way and were told what. */
  get told(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#told].toSorted(([one], [other]) => one.localeCompare(other)));
  }

  /** What may never be, whatever happens to a fleet. */
  get lies(): number {
    return this.of("silent") + this.of("foreign");
  }

  get times() {
    return {
      firstP50Ms: percentile(this.#firstsMs, 50),
      firstP99Ms: percentile(this.#firstsMs, 99),
      totalP50Ms: percentile(this.#totalsMs, 50),
      totalP99Ms: percentile(this.#totalsMs, 99),
      totalMaxMs: percentile(this.#totalsMs, 100),
      refusalP50Ms: percentile(this.#refusalsMs, 50),
      refusalP99Ms: percentile(this.#refusalsMs, 99),
      cutMaxMs: percentile(this.#cutsMs, 100),
    };
  }

  /** All of it in a line, for people. */
  summary(title: string): string {
    const times = Object.entries(this.times)
      .filter(([, ms]) => ms !== undefined)
      .map(([name, ms]) => `${name} ${Math.round(ms ?? 0)}`);
    const told = Object.entries(this.told).map(
      ([what, count]) => `${count} ${what} (${this.#words.get(what) ?? "no words"})`,
    );
    return [`${title}: ${this.sent} sent, ${this.of("exact")} exact`, ...told, ...times].join("; ");
  }
}

export function percentile(values: readonly number[], percent: number): number | undefined {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.max(Math.ceil((sorted.length * percent) / 100) - 1, 0)];
}
