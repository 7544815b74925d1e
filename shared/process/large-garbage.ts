import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Bytes of passed bodies after which their buffers are collected. */
const leftBytesMax = 4 * 1024 * 1024;

let leftBytes = 0;

/**
 * Counts the bytes of a passed body, and starts a young collection after every `leftBytesMax`. Call it for every body.
 * Its buffers are garbage then, but V8 counts them as memory until it collects. At some ten megabytes V8 collects the
 * whole heap, on both cores and for many times as long as the bodies took: several times a second when prompts are
 * long. The buffers are young, so a young collection of a millisecond or so frees them too. The collection waits until
 * this turn's output has been sent. A thread has one heap, and so one counter.
 */
export function bodyWent(bytes: number): void {
  leftBytes += bytes;
  if (leftBytes < leftBytesMax) return;
  leftBytes = 0;
  setImmediate(() => setImmediate(youngCollector()));
}

let collector: (() => void) | undefined;

/**
 * Returns V8's collector, which Node exposes only behind a flag. Where it is unavailable, nothing is collected early.
 */
function youngCollector(): () => void {
  if (collector !== undefined) return collector;
  setFlagsFromString("--expose-gc");
  const exposed: unknown = runInNewContext("globalThis.gc");
  setFlagsFromString("--no-expose-gc");
  const collect =
    typeof exposed === "function" ? () => Reflect.apply(exposed, undefined, [{ type: "minor" }]) : () => {};
  collector = collect;
  return collect;
}
