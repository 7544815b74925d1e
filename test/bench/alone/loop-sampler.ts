import { isMainThread } from "node:worker_threads";

/** Loaded into a process before all else: says on standard error whenever its event loop stood still. */
const everyMs = 5;
const tellFromMs = 10;

if (isMainThread) {
  let lastMs = performance.now();
  setInterval(() => {
    const nowMs = performance.now();
    const stoodMs = nowMs - lastMs - everyMs;
    lastMs = nowMs;
    if (stoodMs >= tellFromMs) process.stderr.write(`loop stood ${stoodMs.toFixed(0)}\n`);
  }, everyMs).unref();
}
