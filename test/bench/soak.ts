import { readFile } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import type { Measurement } from "./measurement.ts";
import { runLoad, type LoadMeans } from "./run-load.ts";
import type { Scenario } from "./scenarios.ts";
import type { PathProcess, RunningVariant } from "./variants/variant.ts";

/** What each process held, in KB, and when. */
export interface MemorySample {
  readonly atMs: number;
  readonly rssKb: Readonly<Record<string, number>>;
}

const sampleEveryMs = 5_000;
const bytesPerPage = 4_096;

/**
 * Before it counts a variant is as busy as it can be for a moment. V8 gives the young part of its heap its whole size, tens
 * of megabytes, only to what is busy, and in ordinary traffic takes hours to it: that would look like a leak.
 */
const busyFirst: Scenario = {
  name: "soak-busy",
  title: "As busy as it can be, before a soak",
  unit: "request",
  pace: { connections: 64, warmMs: 0, windowMs: 20_000 },
  answer: { delayMs: 0 },
};

/** Ordinary traffic for minutes: streams that come and go, and small answers between them. */
export function soakScenarios(minutes: number): readonly Scenario[] {
  const windowMs = minutes * 60_000;
  return [
    {
      name: "soak",
      title: `50 streams at 20 chunks a second that come and go, for ${minutes} minutes, and 40 small answers a second`,
      unit: "chunk",
      pace: { connections: 50, rampMs: 5_000, warmMs: 0, windowMs },
      answer: { chunks: 100, delayMs: 50 },
    },
    {
      name: "soak-whole",
      title: "40 small answers a second, beside the streams",
      unit: "request",
      pace: { connections: 8, warmMs: 0, windowMs, rate: 40 },
      answer: { delayMs: 0 },
    },
  ];
}

/**
 * Puts a variant under ordinary traffic for long, and looks at its memory all the while. What a runtime for JavaScript
 * holds goes up and down with its collections, so that what counts is the least of a tenth of the time: the last tenth's
 * over the second's, when code is warm and pools are full.
 */
export async function soak(
  running: RunningVariant,
  means: LoadMeans & { readonly minutes: number },
): Promise<{
  readonly measurements: readonly Omit<Measurement, "variant">[];
  readonly samples: readonly MemorySample[];
}> {
  await runLoad(busyFirst, running, means);
  const all = soakScenarios(means.minutes);
  const samples: MemorySample[] = [];
  const over = new AbortController();
  const sampling = sampleUntil(over.signal, running.processes, samples);
  try {
    const measured = await Promise.all(all.map((scenario) => runLoad(scenario, running, means)));
    const [streams, ...others] = measured.map((each, place) => ({
      ...each,
      scenario: all[place]?.name ?? "",
      round: 1,
    }));
    if (streams === undefined) throw new Error("a soak without streams");
    return { measurements: [{ ...streams, figures: growthFigures(samples) }, ...others], samples };
  } finally {
    over.abort();
    await sampling;
  }
}

/**
 * How much each process grew: the least it held in the last tenth over the least in the second. What a target is about is
 * the most of our own; NATS and Redis fill pools of theirs.
 */
export function growthFigures(samples: readonly MemorySample[]): Readonly<Record<string, number>> {
  const tenth = (which: number): readonly MemorySample[] =>
    samples.slice(Math.floor((samples.length * which) / 10), Math.floor((samples.length * (which + 1)) / 10));
  const leastOf = (some: readonly MemorySample[], name: string): number =>
    Math.min(...some.map(({ rssKb }) => rssKb[name] ?? Infinity));
  const grown = Object.keys(samples[0]?.rssKb ?? {}).map(
    (name) => [name, leastOf(tenth(9), name) / leastOf(tenth(1), name)] as const,
  );
  const ours = grown.filter(([name]) => ["gateway", "agent"].includes(name)).map(([, times]) => times);
  return {
    rssGrowth: Math.max(...ours),
    ...Object.fromEntries(grown.map(([name, times]) => [`${name}'s growth`, times])),
  };
}

async function sampleUntil(over: AbortSignal, processes: readonly PathProcess[], into: MemorySample[]): Promise<void> {
  const begunMs = performance.now();
  while (!over.aborted) {
    const rows = await Promise.all(processes.map(async ({ name, pid }) => [name, await residentKbOf(pid)] as const));
    into.push({ atMs: performance.now() - begunMs, rssKb: Object.fromEntries(rows) });
    await pause(sampleEveryMs, undefined, { signal: over }).catch(() => undefined);
  }
}

async function residentKbOf(pid: number): Promise<number> {
  const [, pages = "0"] = (await readFile(`/proc/${pid}/statm`, "utf8")).split(" ");
  return (Number(pages) * bytesPerPage) / 1_024;
}
