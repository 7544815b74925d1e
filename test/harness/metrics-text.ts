/** One line of a scrape that has a value. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

interface Family {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: readonly Sample[];
}

const familyLine = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (\S.*)$/;
const sampleLine = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (NaN|[+-]Inf|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/;
const labelText = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/y;
const histogramSuffixes = ["_bucket", "_sum", "_count"];

/** What a gateway shows of itself, read as strictly as the formats of Prometheus and of OpenMetrics are written down. */
export class MetricsText {
  readonly families: ReadonlyMap<string, Family>;

  private constructor(families: ReadonlyMap<string, Family>) {
    this.families = families;
  }

  /** Asks the operations port of a gateway, without a key. */
  static async scrape(operationsUrl: string): Promise<MetricsText> {
    const response = await fetch(`${operationsUrl}/metrics`);
    if (response.status !== 200) throw new Error(`the scrape ended with ${response.status}`);
    return MetricsText.read(await response.text());
  }

  /** The older form, or OpenMetrics with its `# EOF`. */
  static read(text: string): MetricsText {
    const isOpen = text.endsWith("\n# EOF\n");
    const lines = text.replace(/# EOF\n$/, "").split("\n");
    if (lines.pop() !== "") throw new Error("the last line has no end");
    const families = new Map<string, { name: string; type: string; help: string; samples: Sample[] }>();
    let help: { readonly name: string; readonly text: string } | undefined;
    let family: { name: string; type: string; samples: Sample[] } | undefined;
    for (const line of lines) {
      if (line === "") {
        if (isOpen) throw new Error("OpenMetrics has no empty lines");
        continue;
      }
      const [, word, name, rest] = familyLine.exec(line) ?? [];
      if (word === "HELP" && name !== undefined && rest !== undefined) {
        help = { name, text: rest };
      } else if (word === "TYPE" && name !== undefined && rest !== undefined) {
        if (help?.name !== name) throw new Error(`no HELP before: ${line}`);
        if (families.has(name)) throw new Error(`told twice: ${line}`);
        if (!["counter", "gauge", "histogram"].includes(rest)) throw new Error(`no type: ${line}`);
        const begun = { name, type: rest, help: help.text, samples: [] };
        families.set(name, begun);
        family = begun;
      } else {
        if (family === undefined) throw new Error(`a value of nothing: ${line}`);
        family.samples.push(readSample(line, family, isOpen));
      }
    }
    for (const each of families.values()) check(each);
    return new MetricsText(families);
  }

  /** All values under a name, those of a histogram under its longer ones. */
  samples(name: string): readonly Sample[] {
    return [...this.families.values()].flatMap(({ samples }) => samples.filter((sample) => sample.name === name));
  }

  /** The sum of the values that have these labels, whatever others they have; 0 if there are none. */
  value(name: string, labels: Readonly<Record<string, string>> = {}): number {
    const wanted = Object.entries(labels);
    const found = this.samples(name).filter((each) => wanted.every(([label, value]) => each.labels[label] === value));
    return found.reduce((sum, { value }) => sum + value, 0);
  }
}

function readSample(line: string, family: { readonly name: string; readonly type: string }, isOpen: boolean): Sample {
  const [, name, labelled, text] = sampleLine.exec(line) ?? [];
  if (name === undefined || text === undefined) throw new Error(`no sample: ${line}`);
  const allowed =
    family.type === "histogram"
      ? histogramSuffixes.map((suffix) => family.name + suffix)
      : [isOpen && family.type === "counter" ? `${family.name}_total` : family.name];
  if (!allowed.includes(name)) throw new Error(`not of ${family.name}: ${line}`);
  if (family.type === "counter" && !name.endsWith("_total"))
    throw new Error(`a counter's name ends in _total: ${line}`);
  return { name, labels: readLabels(labelled ?? "", line), value: Number(text.replace("Inf", "Infinity")) };
}

function readLabels(text: string, line: string): Record<string, string> {
  const labels: Record<string, string> = {};
  labelText.lastIndex = 0;
  while (labelText.lastIndex < text.length) {
    const [, name, value] = labelText.exec(text) ?? [];
    if (name === undefined || value === undefined) throw new Error(`no labels: ${line}`);
    if (name in labels) throw new Error(`a label twice: ${line}`);
    labels[name] = value.replace(/\\(.)/g, (_, escaped: string) => (escaped === "n" ? "\n" : escaped));
  }
  return labels;
}

function check({ name, type, samples }: Family): void {
  const seen = new Set<string>();
  for (const sample of samples) {
    const key = `${sample.name} ${keyOf(sample.labels)}`;
    if (seen.has(key)) throw new Error(`twice: ${key}`);
    seen.add(key);
    if (type !== "gauge" && !(sample.value >= 0)) throw new Error(`below zero: ${key}`);
  }
  if (type !== "histogram") return;
  const groups = Map.groupBy(samples, ({ labels: { le: _le, ...rest } }) => keyOf(rest));
  for (const [labels, group] of groups) {
    const buckets = group.filter((sample) => sample.name === `${name}_bucket`);
    const bounds = buckets.map((bucket) => Number(bucket.labels["le"]?.replace("+Inf", "Infinity")));
    const counts = buckets.map(({ value }) => value);
    if (bounds.at(-1) !== Infinity || !isAscending(bounds) || !isAscending(counts))
      throw new Error(`the buckets of ${name} do not rise: ${labels}`);
    const all = group.find((sample) => sample.name === `${name}_count`)?.value;
    if (all !== counts.at(-1)) throw new Error(`not all of ${name} are counted: ${labels}`);
    if (!group.some((sample) => sample.name === `${name}_sum`)) throw new Error(`${name} has no sum: ${labels}`);
  }
}

function keyOf(labels: Readonly<Record<string, string | undefined>>): string {
  const names = Object.keys(labels).toSorted();
  return JSON.stringify(names.map((name) => [name, labels[name]]));
}

function isAscending(numbers: readonly number[]): boolean {
  return numbers.every((number, at) => at === 0 || number >= (numbers[at - 1] ?? NaN));
}
