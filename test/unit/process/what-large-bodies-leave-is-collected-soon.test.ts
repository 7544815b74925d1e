import { memoryUsage } from "node:process";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { largeBodyWent } from "#shared/process/large-garbage.ts";
import { until } from "../../harness/until.ts";

const mib = 1024 * 1024;

/** A body that came and went. */
function pass(bytes: number): void {
  Buffer.alloc(bytes).fill(1);
  largeBodyWent(bytes);
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
  pass(mib);
  await until(() => memoryUsage().arrayBuffers - before < 4 * mib, { what: "the buffers to be collected" });
});
