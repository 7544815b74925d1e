import { describe, expect, test } from "vitest";
import {
  bearsInterim,
  interimResponses,
  interimResponsesMax,
} from "../../../services/gateway/dispatch/interim-responses.ts";

const intervalMs = 50_000;

function waiting(response: { headersSent?: boolean; destroyed?: boolean } = {}) {
  const told = { count: 0 };
  const writeProcessing = (): void => void (told.count += 1);
  const { onTick } = interimResponses(
    { headersSent: false, destroyed: false, ...response, writeProcessing },
    intervalMs,
  );
  return { told, tick: (nowMs: number) => onTick?.(nowMs, undefined) };
}

describe("a client that waits for a whole answer", () => {
  test("is told once in an interval that it is not forgotten, and never before the first has passed", () => {
    const { told, tick } = waiting();
    tick(1_000);
    tick(1_000 + intervalMs - 1);
    expect(told.count).toBe(0);
    for (let ms = 0; ms < 2 * intervalMs; ms += 50) tick(1_000 + intervalMs + ms);
    expect(told.count).toBe(2);
  });

  test("is told no more often than clients were seen to bear", () => {
    const { told, tick } = waiting();
    for (let round = 0; round < 50; round += 1) tick(round * intervalMs);
    expect(told.count).toBe(interimResponsesMax);
  });

  test.each([{ headersSent: true }, { destroyed: true }])(
    "is told nothing once it has its answer or is gone: %o",
    (state) => {
      const { told, tick } = waiting(state);
      tick(0);
      tick(intervalMs);
      expect(told.count).toBe(0);
    },
  );

  const sdk = { "x-stainless-lang": "js", "x-stainless-runtime": "node" };
  test.each<[boolean, string, Record<string, string>, string]>([
    [true, "the Node SDK", sdk, "1.1"],
    [true, "the Python SDK", { "x-stainless-runtime": "CPython" }, "1.1"],
    [false, "an SDK that was never tried", { "x-stainless-lang": "js", "x-stainless-runtime": "deno" }, "1.1"],
    [false, "anybody else", {}, "1.1"],
    [false, "an old HTTP", sdk, "1.0"],
    [false, "a proxy that says so", { ...sdk, via: "1.1 proxy" }, "1.1"],
    [false, "a proxy that tells whom it speaks for", { ...sdk, "x-forwarded-for": "10.0.0.1" }, "1.1"],
    [false, "a proxy of the newer kind", { ...sdk, forwarded: "for=10.0.0.1" }, "1.1"],
  ])("bears that or not (%s): %s", (bears, _, headers, httpVersion) => {
    expect(bearsInterim({ headers, httpVersion })).toBe(bears);
  });
});
