/** One thing to measure: what it is called, and how it is done once. */
export interface Variant {
  readonly name: string;
  readonly once: () => unknown;
}

export interface Measured {
  readonly name: string;
  /** Median over all rounds, in microseconds. */
  readonly medianUs: number;
  /** Median, least and most of the ratios to the baseline of the same round. */
  readonly ratio: { readonly median: number; readonly min: number; readonly max: number };
}

const rounds = 9;
const timesPerRound = 2_000;

/**
 * Times variants against the first of them, the baseline. Each round does all of them, in an order of its own, and what
 * counts are the ratios within a round: this machine's mood changes from one second to the next, but not within one.
 */
export async function measureInRounds(variants: readonly Variant[]): Promise<readonly Measured[]> {
  for (const variant of variants) await medianOf(variant);
  const byName = new Map<string, number[]>(variants.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    const turned = [...variants.slice(round % variants.length), ...variants.slice(0, round % variants.length)];
    for (const variant of turned) byName.get(variant.name)?.push(await medianOf(variant));
  }
  const baseline = byName.get(variants[0]?.name ?? "") ?? [];
  return [...byName].map(([name, medians]) => {
    const ratios = medians.map((us, round) => us / (baseline[round] ?? Number.NaN));
    return {
      name,
      medianUs: median(medians),
      ratio: { median: median(ratios), min: Math.min(...ratios), max: Math.max(...ratios) },
    };
  });
}

async function medianOf({ once }: Variant): Promise<number> {
  const tookUs: number[] = [];
  for (let time = 0; time < timesPerRound; time += 1) {
    const startedAtMs = performance.now();
    const done = once();
    if (done instanceof Promise) await done;
    tookUs.push((performance.now() - startedAtMs) * 1_000);
  }
  return median(tookUs);
}

export function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** A line for each, the baseline first. */
export function inLines(measured: readonly Measured[]): string {
  const width = Math.max(...measured.map(({ name }) => name.length));
  const lines = measured.map(({ name, medianUs, ratio }) => {
    const ratios = `${ratio.median.toFixed(2)} × (${ratio.min.toFixed(2)} to ${ratio.max.toFixed(2)})`;
    return `${name.padEnd(width)}  ${medianUs.toFixed(1).padStart(8)} µs  ${ratios}`;
  });
  return `${lines.join("\n")}\n`;
}
