import { constants, PerformanceObserver, type PerformanceEntry } from "node:perf_hooks";
import { memoryUsage } from "node:process";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { bodyWent } from "#shared/process/large-garbage.ts";
import { until } from "../../harness/until.ts";

const mib = 1024 * 1024;

/** A body that came and went. */
function pass(bytes: number): void {
  Buffer.alloc(bytes).fill(1);
  bodyWent(bytes);
}

test("of what large bodies went through little is left, however many they were", async () => {
  const before = memoryUsage().arrayBuffers;
  let most = 0;
  for (let body = 0; body < 60; body += 1) {
    pass(mib);
    await nextTurn();
    most = Math.max(most, memoryUsage().arrayBuffers - before);
  }
  expect(most).toBeLessThan(30 * mib);
  // What a collection frees is counted out by the one after it where another thread is not done with it yet.
  const isFree = (): boolean => {
    if (memoryUsage().arrayBuffers - before < 4 * mib) return true;
    pass(4 * mib);
    return false;
  };
  await until(isFree, { what: "the buffers to be collected" });
});

test("for what thousands of long prompts leave behind V8 hardly goes through all of the heap", async () => {
  const seen: unknown[] = [];
  const observer = new PerformanceObserver((list) => seen.push(...list.getEntries().map(kindOf)));
  observer.observe({ entryTypes: ["gc"] });
  for (let body = 0; body < 10_000; body += 1) {
    pass(100_000);
    await nextTurn();
  }
  await until(() => seen.length > 0, { what: "a collection to be told of" });
  observer.disconnect();
  // One or two are for what came before. Were nothing collected early, there would be twenty.
  expect(seen.filter((kind) => kind === constants.NODE_PERFORMANCE_GC_MAJOR).length).toBeLessThan(8);
});

function kindOf(entry: PerformanceEntry): unknown {
  return Reflect.get(Reflect.get(entry, "detail") as object, "kind");
}
