import { isMainThread } from "node:worker_threads";

/**
 * Loaded into a process with `--import`: writes a line to standard error when one turn of its event loop took long. The
 * time is CPU time of the thread, so that other processes of the machine do not count.
 */
const everyMs = 5;
const reportFromMs = 3;

if (isMainThread) {
  const cpuMs = (): number => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  };
  let lastMs = cpuMs();
  setInterval(() => {
    const nowMs = cpuMs();
    const heldMs = nowMs - lastMs;
    lastMs = nowMs;
    if (heldMs >= reportFromMs) process.stderr.write(`loop held for ${heldMs.toFixed(0)} ms\n`);
  }, everyMs).unref();
}
