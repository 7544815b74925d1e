import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { until } from "../harness/until.ts";

export const liveMemoryFolder = "BENCH_LIVE_MEMORY_FOLDER";
export const asksForLiveMemory = "SIGUSR2";
export const liveMemoryFile = (pid: number): string => `live-memory-${pid}`;

/** The settings of a process that can be asked for what is alive in it. */
export function tellingLiveMemory(folder: string): Readonly<Record<string, string>> {
  const preload = pathToFileURL(join(import.meta.dirname, "variants", "tell-live-memory.ts")).href;
  return { NODE_OPTIONS: `--import=${preload}`, [liveMemoryFolder]: folder };
}

/** What is left in a process, on and off the heap, when all that nobody holds has been collected. In KB. */
export async function liveKbOf(pid: number, folder: string): Promise<number> {
  const file = join(folder, liveMemoryFile(pid));
  await rm(file, { force: true });
  process.kill(pid, asksForLiveMemory);
  return Number(await until(() => readFile(file, "utf8"), { what: "a process to tell what is alive in it" }));
}
