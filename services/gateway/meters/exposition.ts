import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { CountFamily } from "./count.ts";
import { TallyFamily, type TallyHistogramRow } from "./tally.ts";

/** Name, help text and labels of a metric; `infra/metrics.md` says the same. */
export interface MetricWords<Label extends string> {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly Label[];
}

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

  /** Every metric, whether it has a value yet or not. */
  get described(): readonly MetricDescription[] {
    return this.#described;
  }

  counter<Label extends string>(words: MetricWords<Label>): Counter<Label> {
    this.#describe("counter", words);
    return new Counter(this.#configuration(words));
  }

  /** Adds a gauge that is read whenever the metrics are shown. Values that `read` does not set are not shown. */
  gauge<Label extends string>(words: MetricWords<Label>, read: (gauge: Gauge<Label>) => void): void {
    this.#describe("gauge", words);
    const configuration = this.#configuration(words);
    void new Gauge({
      ...configuration,
      collect() {
        this.reset();
        if (configuration.labelNames.length === 0) this.remove();
        read(this);
      },
    });
  }

  /** Adds a counter whose number is kept elsewhere. */
  readCounter(words: MetricWords<never>, read: () => number): void {
    this.#describe("counter", words);
    void new Counter({
      ...this.#configuration(words),
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  }

  /** Adds a counter for frequent events: each addition must cost next to nothing. */
  counts<Label extends string>(words: MetricWords<Label> & { readonly labels: readonly Label[] }): CountFamily {
    this.#describe("counter", words);
    const family = new CountFamily(words.labels);
    void new Counter<string>({
      ...this.#configuration<string>(words),
      collect() {
        this.reset();
        for (const { labels, number } of family.rows()) this.inc(labels, number);
      },
    });
    return family;
  }

  /** Adds a histogram for frequent events: each count must cost next to nothing. */
  tallies<Label extends string>(
    words: MetricWords<Label> & { readonly labels: readonly Label[]; readonly buckets: readonly number[] },
  ): TallyFamily {
    const { name, help, labels, buckets } = words;
    this.#describe("histogram", words);
    const family = new TallyFamily(buckets, labels);
    const configuration = { name, help, labelNames: labels, buckets: [...buckets], registers: [] };
    this.#registry.registerMetric(new TalliedHistogram(configuration, () => family.rows(name)));
    return family;
  }

  /** Returns all metrics as text, in the format that the `Accept` of a request asks for. */
  async show(accept: string | undefined): Promise<{ readonly type: string; readonly text: string }> {
    const text = await this.#registry.metrics();
    return accept?.includes("application/openmetrics-text") === true
      ? { type: openMetricsType, text: openMetrics(text) }
      : { type: textType, text };
  }

  #configuration<Label extends string>({ name, help, labels = [] }: MetricWords<Label>) {
    return { name, help, labelNames: labels, registers: [this.#registry] };
  }

  #describe(type: MetricDescription["type"], { name, help, labels = [] }: MetricWords<string>): void {
    this.#described.push({ name, type, help, labels });
  }
}

/** A histogram for `prom-client` whose counts come from tallies when it is shown. */
class TalliedHistogram<Label extends string> extends Histogram<Label> {
  readonly #configuration: { readonly name: string; readonly help: string };
  readonly #rows: () => readonly TallyHistogramRow[];

  constructor(
    configuration: ConstructorParameters<typeof Histogram<Label>>[0],
    rows: () => readonly TallyHistogramRow[],
  ) {
    super(configuration);
    this.#configuration = configuration;
    this.#rows = rows;
  }

  async getForPromString() {
    const { name, help } = this.#configuration;
    return { name, help, type: "histogram", values: this.#rows() };
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
