import type { ProgressLine } from "#shared/model/model.ts";
import { byteSize } from "../text/byte-size.ts";
import { onOneLine } from "../text/on-one-line.ts";

const barWidth = 20;

/** Returns the progress in whole percent. Null when the runtime does not report it. */
export function percentOf({ completed_bytes: completed, total_bytes: total }: ProgressLine): number | null {
  if (completed === null || total === null || total === 0) return null;
  return Math.min(100, Math.floor((completed / total) * 100));
}

/** Formats progress for a terminal: a bar, the sizes, the rate and the status. */
export function progressBar(model: string, progress: ProgressLine, bytesPerSecond: number | null): string {
  const percent = percentOf(progress);
  const rate = bytesPerSecond === null ? [] : [`${byteSize(Math.max(0, bytesPerSecond))}/s`];
  const moved =
    percent === null ? [] : [`[${bar(percent)}]`, `${String(percent).padStart(3)} %`, sizes(progress), ...rate];
  return [model, ...moved, onOneLine(progress.status)].filter((part) => part !== "").join("  ");
}

/** Formats progress for a log, in words. */
export function progressSentence(model: string, progress: ProgressLine): string {
  const percent = percentOf(progress);
  const moved = percent === null ? [] : [`${percent} % of ${byteSize(progress.total_bytes ?? 0)}`];
  return `${model}: ${[onOneLine(progress.status), ...moved].filter((part) => part !== "").join(", ")}`;
}

function bar(percent: number): string {
  const filled = Math.floor((percent / 100) * barWidth);
  return "#".repeat(filled) + "-".repeat(barWidth - filled);
}

function sizes({ completed_bytes: completed, total_bytes: total }: ProgressLine): string {
  return `${byteSize(completed ?? 0)} of ${byteSize(total ?? 0)}`;
}
