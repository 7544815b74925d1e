import type { ProgressLine } from "#shared/protocol/model.ts";
import { onOneLine } from "#shared/process/clean-text.ts";
import { type Output, type CliContext, widthOf } from "./command-line.ts";
import { byteSize } from "./quantity-text.ts";
import { cutText } from "./table-text.ts";

interface ShownProgress {
  tell(progress: ProgressLine): void;
  /** Call once, whether the work succeeded or failed. */
  end(): void;
}

const redrawMs = 100;
export const clearLine = "\r\u001b[K";
/** Maximum number of remembered statuses; above it all are forgotten. A runtime may invent any number of them. */
const statusesMax = 1_000;

/**
 * Shows the progress of a model action on standard error. On a terminal it redraws one line; elsewhere it writes lines.
 */
export function showProgress(model: string, context?: Pick<CliContext, "stderr" | "clock">): ShownProgress {
  if (context === undefined) return { tell: () => undefined, end: () => undefined };
  const { stderr, clock } = context;
  return stderr.isTTY ? redrawn(onOneLine(model), stderr, clock) : inLines(onOneLine(model), stderr);
}

function redrawn(model: string, terminal: Output, clock: Pick<CliContext["clock"], "now">): ShownProgress {
  const rate = new TransferRate();
  let drawn: { readonly atMs: number; readonly status: string } | undefined;
  return {
    tell(progress) {
      const nowMs = clock.now();
      const { status, completed_bytes: completed } = progress;
      const bytesPerSecond = completed === null ? null : rate.at(nowMs, status, completed);
      if (drawn?.status === status && nowMs - drawn.atMs < redrawMs) return;
      drawn = { atMs: nowMs, status };
      const width = (widthOf(terminal) ?? Infinity) - 1;
      terminal.write(`${clearLine}${cutText(progressBar(model, progress, bytesPerSecond), width)}`);
    },
    end() {
      if (drawn !== undefined) terminal.write(clearLine);
    },
  };
}

/** Writes a line for each status, and for each tenth of its progress. */
function inLines(model: string, log: Output): ShownProgress {
  const tenths = new Map<string, number>();
  return {
    tell(progress) {
      const { status } = progress;
      const tenth = Math.floor((percentOf(progress) ?? 0) / 10);
      if (tenth <= (tenths.get(status) ?? -1)) return;
      if (tenths.size >= statusesMax) tenths.clear();
      tenths.set(status, tenth);
      log.write(`${progressSentence(model, progress)}\n`);
    },
    end: () => undefined,
  };
}

const barWidth = 20;

/** Returns the progress in whole percent. Null when the runtime does not report it. */
function percentOf({ completed_bytes: completed, total_bytes: total }: ProgressLine): number | null {
  if (completed === null || total === null || total === 0) return null;
  return Math.min(100, Math.floor((completed / total) * 100));
}

/** Formats progress for a terminal: a bar, the sizes, the rate and the status. */
function progressBar(model: string, progress: ProgressLine, bytesPerSecond: number | null): string {
  const percent = percentOf(progress);
  const parts = [model];
  if (percent !== null) {
    const filled = Math.floor((percent / 100) * barWidth);
    const sizes = `${byteSize(progress.completed_bytes ?? 0)} of ${byteSize(progress.total_bytes ?? 0)}`;
    parts.push(`[${"#".repeat(filled).padEnd(barWidth, "-")}]`, `${String(percent).padStart(3)} %`, sizes);
    if (bytesPerSecond !== null) parts.push(`${byteSize(Math.max(0, bytesPerSecond))}/s`);
  }
  return [...parts, onOneLine(progress.status)].filter((part) => part !== "").join("  ");
}

/** Formats progress for a log, in words. */
function progressSentence(model: string, progress: ProgressLine): string {
  const percent = percentOf(progress);
  const moved = percent === null ? [] : [`${percent} % of ${byteSize(progress.total_bytes ?? 0)}`];
  return `${model}: ${[onOneLine(progress.status), ...moved].filter((part) => part !== "").join(", ")}`;
}

/**
 * The rate is measured over this window. The mean of a whole pull, which can take hours, would not show the present
 * rate.
 */
const windowMs = 5_000;
const sampleMs = 250;

/** Measures the transfer rate. The caller passes the time. */
class TransferRate {
  #of: string | undefined;
  #samples: { readonly atMs: number; readonly bytes: number }[] = [];

  /** Returns the current rate in bytes a second, for the transfer `of`. Null until there are enough samples. */
  at(nowMs: number, of: string, bytes: number): number | null {
    const before = this.#samples.at(-1);
    if (this.#of !== of || (before !== undefined && bytes < before.bytes)) this.#samples = [];
    this.#of = of;
    const last = this.#samples.at(-1);
    if (last === undefined || nowMs - last.atMs >= sampleMs) this.#samples.push({ atMs: nowMs, bytes });
    while (this.#samples.length > 2 && nowMs - (this.#samples[0]?.atMs ?? nowMs) > windowMs) this.#samples.shift();
    const [first] = this.#samples;
    if (first === undefined || nowMs - first.atMs < sampleMs) return null;
    return ((bytes - first.bytes) * 1_000) / (nowMs - first.atMs);
  }
}
