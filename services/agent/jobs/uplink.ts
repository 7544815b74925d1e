import type { Broker, PublishOptions } from "#shared/broker/broker.ts";
import type { Clock } from "#shared/process/clock.ts";

/** A stream that has something to send. */
export interface UplinkSender {
  /** The number of the last frame sent; streams that have sent none go first. */
  readonly lastSequence: number;
  /** Publishes about `bytesMax` bytes. Returns true when more can be sent at once. */
  sendTurn(bytesMax: number): boolean;
}

/** Bytes of a NATS `PUB` line beside the subject: the verb, blanks, the length and line ends. */
const headBytes = 16;
/** Interval at which a line in use is measured; it is also measured whenever `shareShown` of the window was published. */
const measureEveryMs = 100;

interface Flush {
  readonly position: number;
  readonly aheadBytes: number;
  readonly sentAtMs: number;
}

/**
 * The line from this machine to its broker. Answers take turns on it and wait here, not in the queues of the
 * connection, the kernel and a router. Beats, presence and pings therefore never wait behind more than a fraction of a
 * second of answers. `flush()` measures the line: the broker answers it when everything published before has arrived.
 */
export class Uplink {
  /** Bytes published so far: the position on the line at which the latest message ends. */
  publishedBytes = 0;
  /** The broker has every byte up to this position, or the connection that carried it broke. */
  drainedBytes = 0;
  /** True while a stream waits for the line. */
  isFull = false;
  readonly #broker: Broker;
  readonly #clock: Pick<Clock, "now">;
  /** Senders that wait for their turn, in order. */
  #waiting: UplinkSender[] = [];
  #isTurnDue = false;
  #windowBytes = startWindowBytes;
  #baseMs = Infinity;
  /** Unanswered flushes, oldest first. */
  #flushes: Flush[] = [];
  #flushedBytes = 0;
  #flushedAtMs = -Infinity;
  /** Only a flush beyond this position measures the current window. */
  #judgedFrom = 0;

  constructor(options: { readonly broker: Broker; readonly clock: Pick<Clock, "now"> }) {
    this.#broker = options.broker;
    this.#clock = options.clock;
    this.#broker.onChange((connected) => this.#startAnew(connected));
    this.#flush();
  }

  /** Sends a message at once: beats and other short messages take no turn. */
  publish(subject: string, data: Uint8Array, options?: PublishOptions): void {
    if (this.#broker.publish(subject, data, options) === "disconnected") return;
    this.publishedBytes += data.byteLength + subject.length + headBytes;
  }

  /** Gives the sender its turn at the end of this turn of the event loop, or when the line has room. */
  enqueue(sender: UplinkSender): void {
    this.#waiting.push(sender);
    if (this.isFull || this.#isTurnDue) return;
    this.#isTurnDue = true;
    setImmediate(this.#takeTurns);
  }

  /** Measures now how much the broker has, if anything was published since the last flush. */
  measure(): void {
    if (this.publishedBytes > this.#flushedBytes) this.#flush();
  }

  readonly #takeTurns = (): void => {
    this.#isTurnDue = false;
    if (this.isFull) this.#waiting.sort((a, b) => Number(a.lastSequence > 0) - Number(b.lastSequence > 0));
    const nowMs = this.#clock.now();
    // A frame published while the connection is down would have to be sent again.
    const [oldest] = this.#flushes;
    // A flush that waits for so long shows that the line has become slower. Nothing more is sent until it is answered.
    const isOverdue = oldest !== undefined && nowMs - oldest.sentAtMs > this.#baseMs + 2 * queueMsMax;
    const isBlocked = !this.#broker.connected || isOverdue;
    let waiting = this.#waiting;
    this.#waiting = [];
    let isStopped = false;
    while (waiting.length > 0 && !isStopped) {
      const bytesMax = turnBytes(this.#windowBytes, waiting.length);
      const more: UplinkSender[] = [];
      let served = 0;
      for (const sender of waiting) {
        isStopped = isBlocked || this.publishedBytes - this.drainedBytes >= this.#windowBytes;
        if (isStopped) break;
        served += 1;
        if (sender.sendTurn(bytesMax)) more.push(sender);
        if (this.publishedBytes - this.#flushedBytes >= this.#windowBytes * shareShown) this.#flush();
      }
      waiting = served === waiting.length ? more : [...waiting.slice(served), ...more];
    }
    this.#waiting = [...waiting, ...this.#waiting];
    this.isFull = this.#waiting.length > 0;
    if (this.publishedBytes === this.#flushedBytes) return;
    if (nowMs - this.#flushedAtMs >= measureEveryMs || (this.isFull && this.#flushes.length === 0)) this.#flush();
  };

  #flush(): void {
    if (!this.#broker.connected) return;
    const aheadBytes = this.publishedBytes - this.drainedBytes;
    const flush = { position: this.publishedBytes, aheadBytes, sentAtMs: this.#clock.now() };
    this.#flushes.push(flush);
    this.#flushedBytes = flush.position;
    this.#flushedAtMs = flush.sentAtMs;
    // A rejected flush was answered too; `#startAnew` has removed the flushes of a broken connection.
    const answered = (): void => this.#answered(flush);
    this.#broker.flush().then(answered, answered);
  }

  #answered(flush: Flush): void {
    const index = this.#flushes.indexOf(flush);
    if (index < 0) return;
    this.#flushes.splice(0, index + 1);
    this.drainedBytes = flush.position;
    this.#judge(flush);
    if (this.isFull) this.#takeTurns();
  }

  #judge({ position, aheadBytes, sentAtMs }: Flush): void {
    const delayMs = this.#clock.now() - sentAtMs;
    const windowBytes = this.#windowBytes;
    const baseMs = nextBase({ windowBytes, delayMs, baseMs: this.#baseMs });
    this.#baseMs = baseMs;
    if (position <= this.#judgedFrom) return;
    this.#windowBytes = nextWindow({ windowBytes, aheadBytes, delayMs, baseMs });
    if (this.#windowBytes !== windowBytes) this.#judgedFrom = this.publishedBytes;
  }

  /**
   * Resets the measurements: a broken connection loses everything in flight. The next connection may take another line,
   * but a thin line stays likely.
   */
  #startAnew(connected: boolean): void {
    this.#flushes = [];
    this.drainedBytes = this.#flushedBytes = this.#judgedFrom = this.publishedBytes;
    this.#windowBytes = Math.min(this.#windowBytes, startWindowBytes);
    this.#baseMs = Infinity;
    if (connected) this.#flush();
    if (this.#waiting.length > 0) setImmediate(this.#takeTurns);
  }
}

const kib = 1024;

/**
 * The window of a fresh connection: half a second of a line of 32 KB/s. On a fast line it doubles with each round trip.
 */
export const startWindowBytes = 16 * kib;
/** The smallest window: an eighth of a second on a line of 16 KB/s, the thinnest line that is supported. */
export const windowBytesMin = 2 * kib;
export const windowBytesMax = 4 * 1024 * kib;
/** The queueing delay that answers aim for on a full line, and the longest before the window shrinks. */
const queueMsWanted = 150;
const queueMsMax = 250;
/** The window grows only when at least this share of it was in flight at the measurement. */
const shareShown = 1 / 4;
/** Below this delay nothing queues, and the window may double however long the line is. */
const queueMsNoticed = 30;

/** Time in which every waiting stream is served once, as far as turns stay above `turnBytesMin`. */
const roundMs = 1_000;
const turnBytesMin = 512;

/** One measured drain: a `flush()` behind published bytes, and the broker's answer to it. */
interface Drain {
  /** Bytes that may be in flight at once. */
  readonly windowBytes: number;
  /** Bytes that were in flight when the `flush()` was sent behind them. */
  readonly aheadBytes: number;
  /** Time from the `flush()` to its answer. */
  readonly delayMs: number;
  /** The shortest delay of this connection: its round trip when nothing queues. */
  readonly baseMs: number;
}

/**
 * Returns the bytes that may be in flight from now on. The window grows when the line would drain more within the
 * wanted delay, and shrinks when bytes queued for too long. A delay between the two changes nothing, since hosts cause
 * delays too.
 */
export function nextWindow({ windowBytes, aheadBytes, delayMs, baseMs }: Drain): number {
  const queueMs = delayMs - baseMs;
  const gain = (baseMs + queueMsWanted) / Math.max(delayMs, 1);
  const drainable = Math.round(aheadBytes * (queueMs < queueMsNoticed ? Math.max(gain, 2) : gain));
  if (drainable > windowBytes && aheadBytes < windowBytes * shareShown) return windowBytes;
  if (drainable > windowBytes) return Math.min(drainable, windowBytes * 2, windowBytesMax);
  return queueMs > queueMsMax ? Math.max(drainable, windowBytesMin) : windowBytes;
}

/**
 * Returns the shortest delay after one more drain. A delay that the smallest window does not shorten is the line's own.
 */
export function nextBase({ windowBytes, delayMs, baseMs }: Omit<Drain, "aheadBytes">): number {
  const isOwn = windowBytes <= windowBytesMin && delayMs - baseMs > queueMsWanted;
  return isOwn ? delayMs : Math.min(baseMs, delayMs);
}

/** Returns the bytes that one stream may send before the next stream has its turn. */
export function turnBytes(windowBytes: number, waiting: number): number {
  const fairShare = (windowBytes * roundMs) / queueMsWanted / waiting;
  return Math.max(turnBytesMin, Math.floor(Math.min(windowBytes / 4, fairShare)));
}
