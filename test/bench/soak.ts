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

/** How long a soak lasts, and how what is alive in a process is learnt. */
interface SoakMeans extends LoadMeans {
  readonly minutes: number;
  readonly liveKbOf: (process: PathProcess) => Promise<number>;
}

/** What is our own, and judged; NATS and Redis fill pools of theirs. */
const ours = new Set(["gateway", "agent"]);

/** What is alive is looked at when code is warm and pools are full, and again shortly before the end: under the same traffic. */
const liveAtShares = [0.2, 0.97] as const;

/**
 * Puts a variant under ordinary traffic for long, and looks at its memory all the while. A leak is told by what is alive
 * after a full collection. What a process is given beyond that goes up and down with V8's collections: it is held against
 * what the process had when it was as busy as it can be.
 */
export async function soak(
  running: RunningVariant,
  means: SoakMeans,
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
    const [measured, live] = await Promise.all([
      Promise.all(all.map((scenario) => runLoad(scenario, running, means))),
      liveAt(running.processes, means, over.signal),
    ]);
    const [streams, ...others] = measured.map((each, place) => ({
      ...each,
      scenario: all[place]?.name ?? "",
      round: 1,
    }));
    if (streams === undefined) throw new Error("a soak without streams");
    const figures = { ...growthOf("live", live), ...growthOf("resident", streams.rssKb), ...leastOfTenths(samples) };
    return { measurements: [{ ...streams, figures }, ...others], samples };
  } finally {
    over.abort();
    await sampling;
  }
}

type Grown = Readonly<Record<string, { readonly before: number; readonly after: number }>>;

/** How much each of our own grew in this kind of memory, and the most of that, which is judged. */
export function growthOf(kind: "live" | "resident", grown: Grown): Readonly<Record<string, number>> {
  const times = Object.entries(grown)
    .filter(([name]) => ours.has(name))
    .map(([name, { before, after }]) => [`${kind} memory of the ${name}, times`, after / before] as const);
  return { [`${kind}Growth`]: Math.max(...times.map(([, each]) => each)), ...Object.fromEntries(times) };
}

/** The least that each process held in the last tenth of the time over the least in the second. */
export function leastOfTenths(samples: readonly MemorySample[]): Readonly<Record<string, number>> {
  const tenth = (which: number): readonly MemorySample[] =>
    samples.slice(Math.floor((samples.length * which) / 10), Math.floor((samples.length * (which + 1)) / 10));
  const leastOf = (some: readonly MemorySample[], name: string): number =>
    Math.min(...some.map(({ rssKb }) => rssKb[name] ?? Infinity));
  const names = Object.keys(samples[0]?.rssKb ?? {});
  return Object.fromEntries(
    names.map((name) => [
      `least resident of the ${name}, last tenth over second`,
      leastOf(tenth(9), name) / leastOf(tenth(1), name),
    ]),
  );
}

/** At both shares of the time, unless it is over before. */
async function liveAt(
  processes: readonly PathProcess[],
  { minutes, liveKbOf }: SoakMeans,
  over: AbortSignal,
): Promise<Grown> {
  const own = processes.filter(({ name }) => ours.has(name));
  const look = async (afterShare: number): Promise<readonly number[]> => {
    await pause(afterShare * minutes * 60_000, undefined, { signal: over });
    return Promise.all(own.map(liveKbOf));
  };
  const [early, late] = liveAtShares;
  const before = await look(early);
  const after = await look(late - early);
  return Object.fromEntries(
    own.map(({ name }, place) => [name, { before: before[place] ?? 0, after: after[place] ?? 0 }]),
  );
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
