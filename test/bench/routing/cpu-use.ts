import { readFile } from "node:fs/promises";
import { availableParallelism, cpus } from "node:os";
import type { PathProcess } from "../variants/variant.ts";

/** The share of all cores that was in use: by the bench with all of its processes, and by the whole host. */
export interface CpuShare {
  readonly bench: number;
  readonly host: number;
}

/** The kernel counts the time of a process in hundredths of a second. */
const ticksPerSecond = 100;

/** Starts to measure. The returned function ends it. Processes that are gone by then do not count. */
export async function watchCpu(processes: readonly PathProcess[]): Promise<() => Promise<CpuShare>> {
  const pids = [process.pid, ...processes.map(({ pid }) => pid)];
  const startMs = performance.now();
  const [before, hostBefore] = [await Promise.all(pids.map(secondsOf)), hostTimes()];
  return async () => {
    const [after, host] = [await Promise.all(pids.map(secondsOf)), hostTimes()];
    const used = after.reduce((sum, seconds, at) => sum + Math.max(0, seconds - (before[at] ?? 0)), 0);
    const seconds = (performance.now() - startMs) / 1_000;
    return {
      bench: used / seconds / availableParallelism(),
      host: (host.busy - hostBefore.busy) / (host.all - hostBefore.all),
    };
  };
}

async function secondsOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  if (stat === undefined) return 0;
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

function hostTimes(): { readonly busy: number; readonly all: number } {
  const times = cpus().map((cpu) => cpu.times);
  const all = times.reduce((sum, { user, nice, sys, idle, irq }) => sum + user + nice + sys + idle + irq, 0);
  return { busy: all - times.reduce((sum, { idle }) => sum + idle, 0), all };
}
