import type { ProgressLine } from "#shared/model/model.ts";
import type { Output, Surroundings } from "../surroundings.ts";
import { cutText } from "../text/cut-text.ts";
import { onOneLine } from "../text/on-one-line.ts";
import { percentOf, progressBar, progressSentence } from "./progress-text.ts";
import { TransferRate } from "./transfer-rate.ts";

export interface ShownProgress {
  tell(progress: ProgressLine): void;
  /** Call once, whether the work succeeded or failed. */
  end(): void;
}

const redrawMs = 100;
const defaultColumns = 80;
const clearLine = "\r\u001b[K";
/** Maximum number of remembered statuses; above it all are forgotten. A runtime may invent any number of them. */
const statusesMax = 1_000;

/**
 * Shows the progress of a model action on standard error. On a terminal it redraws one line; elsewhere it writes lines.
 */
export function showProgress(model: string, surroundings?: Pick<Surroundings, "stderr" | "clock">): ShownProgress {
  if (surroundings === undefined) return { tell: () => undefined, end: () => undefined };
  const { stderr, clock } = surroundings;
  return stderr.isTTY ? redrawn(onOneLine(model), stderr, clock) : told(onOneLine(model), stderr);
}

function redrawn(model: string, terminal: Output, clock: Pick<Surroundings["clock"], "now">): ShownProgress {
  const rate = new TransferRate();
  let drawn: { readonly atMs: number; readonly status: string } | undefined;
  return {
    tell(progress) {
      const nowMs = clock.now();
      const { status, completed_bytes: completed } = progress;
      const bytesPerSecond = completed === null ? null : rate.at(nowMs, status, completed);
      if (drawn?.status === status && nowMs - drawn.atMs < redrawMs) return;
      drawn = { atMs: nowMs, status };
      const width = (terminal.columns ?? defaultColumns) - 1;
      terminal.write(`${clearLine}${cutText(progressBar(model, progress, bytesPerSecond), width)}`);
    },
    end() {
      if (drawn !== undefined) terminal.write(clearLine);
    },
  };
}

/** Writes a line for each status, and for each tenth of its progress. */
function told(model: string, log: Output): ShownProgress {
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
