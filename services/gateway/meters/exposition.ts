import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { CountFamily } from "./count.ts";
import { TallyFamily, type TallyHistogramRow } from "./tally.ts";

/** What a metric is called and means; `infra/metrics.md` says the same. */
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

/** The metrics of one gateway, in a registry of its own, and how they are shown to whoever scrapes them. */
export class Exposition {
  readonly #registry = new Registry();
  readonly #described: MetricDescription[] = [];

  /** Every metric that there is, whether it has a value yet or not. */
  get described(): readonly MetricDescription[] {
    return this.#described;
  }

  counter<Label extends string>(words: MetricWords<Label>): Counter<Label> {
    this.#describe("counter", words);
    return new Counter(this.#configuration(words));
  }

  /** A gauge is read whenever somebody asks for it. What `read` does not set is not shown. */
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

  /** A number that only grows and that somebody else keeps. */
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

  /** A counter that is added to so often that it must cost next to nothing. */
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

  /** A histogram that is counted so often that each count must cost next to nothing. */
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

  /** All of it as text, in the form that the `Accept` of a request asks for. */
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

/** What `prom-client` asks a histogram for when it is shown; the counts come from tallies. */
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
 * The same in OpenMetrics. `prom-client` could write that itself, but takes `_total` from the names of its counters in
 * doing so, also for those who ask for the older form later.
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
