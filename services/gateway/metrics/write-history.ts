import { type Clock, type Timer, untilAborted } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { Added, History, HistoryReader } from "#shared/history/history.ts";
import { type EndedAnswer, type EndedSums, Sums } from "#shared/history/sums.ts";

const minuteMs = 60_000;
/** Minutes whose sums are kept while the store is away. */
export const minutesHeldMax = 240;

interface HistoryWriterOptions {
  readonly history: Pick<History, "add" | "since" | "visit">;
  /** The token of this boot of this gateway. */
  readonly gateway: string;
  readonly clock: Clock;
  readonly log: Pick<Log, "info" | "warn">;
}

/**
 * Adds this gateway's sums of ended requests to the history of the site: once a minute, at a stop, and before the history is
 * read here. Sums whose write failed keep their number, so that the store adds them once.
 */
export class HistoryWriter implements HistoryReader {
  readonly #options: HistoryWriterOptions;
  readonly #timer: Timer;
  /** The sums that are not written yet, by their minute. */
  readonly #waiting = new Map<number, Sums>();
  /** The sums that were sent and not acknowledged. */
  #sent: Added | undefined;
  #sequence = 0;
  #isAway = false;
  #writing: Promise<void> | undefined;

  constructor(options: HistoryWriterOptions) {
    this.#options = options;
    this.#timer = options.clock.every(minuteMs, () => void this.flush());
  }

  /** Adds an ended request to the sums of this minute. */
  add(ended: EndedSums, answer: EndedAnswer): void {
    const minute = Math.floor(this.#options.clock.wall() / minuteMs) * minuteMs;
    let sums = this.#waiting.get(minute);
    if (sums === undefined) {
      this.#waiting.set(minute, (sums = new Sums()));
      if (this.#waiting.size > minutesHeldMax) this.#dropOldest();
    }
    sums.add(ended, answer);
  }

  /** Writes all sums. Those that cannot be written wait for the next time. */
  flush(): Promise<void> {
    return (this.#writing ??= this.#write().finally(() => (this.#writing = undefined)));
  }

  async visit(...asked: Parameters<HistoryReader["visit"]>): Promise<void> {
    await this.flush();
    return this.#options.history.visit(...asked);
  }

  since(): Promise<number | undefined> {
    return this.#options.history.since();
  }

  /** Writes the last sums until the deadline aborts. */
  async stop(deadline: AbortSignal): Promise<void> {
    this.#timer.cancel();
    await untilAborted(deadline, this.flush()).catch(() => undefined);
  }

  async #write(): Promise<void> {
    const { history, gateway, log } = this.#options;
    const minutes = [...this.#waiting.keys()];
    try {
      if (this.#sent !== undefined) await history.add(this.#sent);
      for (const minute of minutes) {
        const sums = this.#waiting.get(minute);
        if (sums === undefined) continue;
        this.#waiting.delete(minute);
        this.#sent = { minute, sums, gateway, sequence: (this.#sequence += 1) };
        await history.add(this.#sent);
      }
      this.#sent = undefined;
      if (this.#isAway) log.info("the history of requests is written again, with the sums of the time between");
      this.#isAway = false;
    } catch (error) {
      if (!this.#isAway) {
        const message = `the history of requests cannot be written: its sums are kept for up to ${minutesHeldMax} minutes with requests (minutesHeldMax)`;
        log.warn({ err: error }, message);
      }
      this.#isAway = true;
    }
  }

  #dropOldest(): void {
    const [[minute, sums] = []] = this.#waiting;
    if (minute === undefined) return;
    this.#waiting.delete(minute);
    const requests = sums?.rowOf("").counts[0];
    const dropped = `${requests} requests are missing in the history: sums of ${minutesHeldMax} minutes waited to be written (minutesHeldMax)`;
    this.#options.log.warn({ requests }, dropped);
  }
}
