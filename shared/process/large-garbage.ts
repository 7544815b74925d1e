import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** When bodies have left buffers behind for so many of their bytes, these are collected. */
const leftBytesMax = 4 * 1024 * 1024;

let leftBytes = 0;

/**
 * To be called with every body that goes by. The buffers that it went through are of no use any more, and still V8 counts
 * them as memory until it collects; when they come to some ten megabytes it goes through all of the heap, on both cores and
 * for many times as long as the bodies took, where prompts are long several times a second. They are young, and a look at
 * the young part of the heap, which takes a millisecond or so, frees them as well. It waits until what this turn has to send
 * is out. There is one heap to a thread, and so one count.
 */
export function bodyWent(bytes: number): void {
  leftBytes += bytes;
  if (leftBytes < leftBytesMax) return;
  leftBytes = 0;
  setImmediate(() => setImmediate(youngCollector()));
}

let collector: (() => void) | undefined;

/** V8's own, which Node gives only to those who ask for it by a flag. Where it cannot be had, nothing is collected early. */
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
