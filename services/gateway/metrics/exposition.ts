import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";

/** The help texts of metrics, by the names that they have in the code; `docs/metrics.md` says the same. */
type HelpTexts<Name extends string> = Readonly<Record<Name, string>>;

export interface MetricDescription {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: readonly string[];
}

const textType = "text/plain; version=0.0.4; charset=utf-8";
const openMetricsType = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/** The metrics of one gateway, in a registry of its own, and their text for scrapers. */
export class Exposition {
  readonly #registry = new Registry();
  readonly #described: MetricDescription[] = [];

  /** Every metric that was added here, whether it has a value yet or not. */
  get described(): readonly MetricDescription[] {
    return this.#described;
  }

  /** Adds a counter for each help text: `failovers` is exposed as `trunkline_failovers_total`. */
  counters<Name extends string, Label extends string>(labels: Label[], help: HelpTexts<Name>) {
    return this.#each(help, (name, text) => {
      return new Counter(this.#describe("counter", `${name}Total`, { help: text, labels }));
    });
  }

  /** Adds a histogram for each help text: `tokenGapSeconds` is exposed as `trunkline_token_gap_seconds`. */
  histograms<Name extends string, Label extends string>(buckets: number[], labels: Label[], help: HelpTexts<Name>) {
    return this.#each(help, (name, text) => {
      return new Histogram({ ...this.#describe("histogram", name, { help: text, labels }), buckets });
    });
  }

  /** Adds a gauge that is read at every scrape. A scrape shows only the values that `read` sets. */
  gauge<Label extends string>(name: string, help: string, labels: Label[], read: (gauge: Gauge<Label>) => void): void {
    void new Gauge({
      ...this.#describe("gauge", name, { help, labels }),
      collect() {
        this.reset();
        // `reset` sets a gauge without labels to 0; an unknown value must be absent instead.
        if (labels.length === 0) this.remove();
        read(this);
      },
    });
  }

  /** Adds a gauge of one value that is read at every scrape. It is absent while the value is undefined. */
  value(name: string, help: string, read: () => number | undefined): void {
    this.gauge(name, help, [], (gauge) => {
      const value = read();
      if (value !== undefined) gauge.set(value);
    });
  }

  /**
   * Adds the default metrics of `prom-client`. Two groups are left out: `trunkline_event_loop_delay_seconds` reports the
   * event loop, and OpenMetrics allows no gauge named `nodejs_active_…_total`. `loopSampleMs` is the interval of the
   * event loop's sampler, which cannot be left out and wakes an idle process.
   */
  addProcessMetrics(loopSampleMs: number): void {
    collectDefaultMetrics({ register: this.#registry, eventLoopMonitoringPrecision: loopSampleMs });
    for (const { name } of this.#registry.getMetricsAsArray()) {
      if (/^nodejs_(?:eventloop|active)_/.test(name)) this.#registry.removeSingleMetric(name);
    }
  }

  /** Returns all metrics as text, in the format that the `Accept` of a request asks for. */
  async show(accept: string | undefined): Promise<{ readonly type: string; readonly text: string }> {
    const text = await this.#registry.metrics();
    return accept?.includes("application/openmetrics-text") === true
      ? { type: openMetricsType, text: openMetrics(text) }
      : { type: textType, text };
  }

  #each<Name extends string, Metric>(help: HelpTexts<Name>, add: (name: string, help: string) => Metric) {
    const added = Object.entries<string>(help).map(([name, text]) => [name, add(name, text)]);
    return Object.fromEntries(added) as Record<Name, Metric>;
  }

  #describe<Label extends string>(
    type: MetricDescription["type"],
    nameInCode: string,
    { help, labels }: { help: string; labels: Label[] },
  ) {
    const name = `trunkline_${nameInCode.replace(/[A-Z]/g, "_$&").toLowerCase()}`;
    this.#described.push({ name, type, help, labels });
    return { name, help, labelNames: labels, registers: [this.#registry] };
  }
}

/**
 * Converts the text to OpenMetrics. `prom-client` could write OpenMetrics itself. It then takes `_total` from the names
 * of its counters, also for later scrapes in the older format.
 */
function openMetrics(text: string): string {
  const counters = new Set([...text.matchAll(/^# TYPE (\S+) counter$/gm)].map(([, name]) => name));
  const named = text.replace(
    /^# (HELP|TYPE) (\S+) (.*)$/gm,
    (line: string, word: string, name: string, rest: string) =>
      counters.has(name) ? `# ${word} ${name.replace(/_total$/, "")} ${rest}` : line,
  );
  return `${named.replace(/\n{2,}/g, "\n")}# EOF\n`;
}

/**
 * Bounds the values of a label. Each value is kept for good, since a counter must not go back. Above the limit, new
 * values share `otherLabel`. A client that invents names cannot fill the memory of systems that store metrics.
 */
export class BoundedLabels {
  readonly #max: number;
  readonly #values = new Set<string>();

  constructor(max: number) {
    this.#max = max;
  }

  has(value: string): boolean {
    return this.#values.has(value);
  }

  of(value: string): string {
    if (this.#values.has(value)) return value;
    if (this.#values.size >= this.#max) return otherLabel;
    this.#values.add(value);
    return value;
  }
}

/** The shared label of all values that came after the limit was reached. */
export const otherLabel = "other";
