import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { markdownReport } from "./markdown-report.ts";
import type { BenchResults } from "./results.ts";

/** Writes what was measured as JSON, and a report of it with its plots, into a folder. */
export async function writeReport(results: BenchResults, folder: string): Promise<void> {
  const { markdown, plots } = markdownReport(results);
  await mkdir(folder, { recursive: true });
  await Promise.all([
    writeFile(join(folder, resultsFile), `${JSON.stringify(results, undefined, 1)}\n`),
    writeFile(join(folder, "report.md"), markdown),
    ...plots.map(({ file, svg }) => writeFile(join(folder, file), svg)),
  ]);
}

export const resultsFile = "results.json";
