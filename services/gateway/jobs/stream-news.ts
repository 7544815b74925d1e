import type { BeatRow, LoadNews } from "#shared/protocol/frame-payload.ts";
import type { Timing } from "#shared/protocol/timing.ts";

/** A stream whose client waits. */
interface WaitingClient {
  readonly nowMs: number;
  /** The machine that has the job, the job's row in its beat, and the load that the job waits for. */
  readonly machine: string;
  readonly row: BeatRow | undefined;
  readonly load: LoadNews | undefined;
  /** True once the status line was written. */
  readonly begun: boolean;
  /** When a piece of the answer was written; undefined before the first one. */
  readonly writtenAtMs: number | undefined;
}

/** The comments of one stream: they keep the connection of a waiting client alive, and say what it waits for. */
export class StreamNews {
  readonly #timing: Timing;
  readonly #acceptedAtMs: number;
  #toldAtMs = 0;
  #toldWaitingFor = "";

  constructor(timing: Timing, acceptedAtMs: number) {
    this.#timing = timing;
    this.#acceptedAtMs = acceptedAtMs;
  }

  /** Returns the comment that is due. The first one waits for `statusHeldMs`: it begins the stream with its status. */
  due(waiting: WaitingClient): string | undefined {
    const { nowMs, writtenAtMs = 0, load, begun } = waiting;
    const timing = this.#timing;
    const what = waitsFor(waiting);
    if (!begun) return nowMs - this.#acceptedAtMs < timing.statusHeldMs ? undefined : this.#told(what, nowMs);
    const silentMs = nowMs - Math.max(writtenAtMs, this.#toldAtMs);
    const isAnswering = waiting.writtenAtMs !== undefined;
    if (silentMs < (isAnswering ? timing.commentIntervalMs : timing.newsIntervalMs)) return undefined;
    const intervalMs = load === undefined ? timing.commentIntervalMs : timing.loadNewsIntervalMs;
    // A new position in the queue, or a load that went on, is reported before the usual interval ends.
    return silentMs >= intervalMs || what !== this.#toldWaitingFor ? this.#told(what, nowMs) : undefined;
  }

  #told(waitingFor: string, nowMs: number): string {
    this.#toldWaitingFor = waitingFor;
    this.#toldAtMs = nowMs;
    return waitingFor;
  }
}

function waitsFor({ machine, row, load }: WaitingClient): string {
  if (row === undefined) return "waiting";
  const [, state, position] = row;
  if (load === undefined) return state === "queued" && position > 0 ? `queued at ${position}` : state;
  const seconds = Math.ceil(load.leftMs / 1_000);
  return `loading ${load.model} on ${machine}, ${load.percent} %, about ${seconds} s`;
}
