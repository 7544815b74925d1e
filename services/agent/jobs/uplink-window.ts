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

/** Returns the published bytes after which a line in use is measured again. */
export function measuredBytes(windowBytes: number): number {
  return windowBytes * shareShown;
}

/**
 * Returns the age at which an unanswered flush shows that the line has become slower. Nothing more is sent until it is
 * answered.
 */
export function overdueMs(baseMs: number): number {
  return baseMs + 2 * queueMsMax;
}

/** Returns the bytes that one stream may send before the next stream has its turn. */
export function turnBytes(windowBytes: number, waiting: number): number {
  const fairShare = (windowBytes * roundMs) / queueMsWanted / waiting;
  return Math.max(turnBytesMin, Math.floor(Math.min(windowBytes / 4, fairShare)));
}
