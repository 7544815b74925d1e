import { bookOf } from "../../../harness/book-of-a-test.ts";
import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import type { KeyLimits } from "#shared/records/key-record.ts";
import { assertMayLoad } from "../../../../services/gateway/limits/load-limit.ts";
import { SharedLimits } from "../../../../services/gateway/limits/shared-limits.ts";
import { LocalLimits } from "../../../../services/gateway/limits/local-limits.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";
import { placing } from "../placed-requests.ts";

/** A key at a gateway that counts by itself. The function causes a load, and returns the fault or "loaded". */
function keyWith(limits: KeyLimits | undefined) {
  const books = limits === undefined ? [] : [bookOf(limits, "abc")];
  const clock = new TurnableClock();
  const local = new LocalLimits({ clock, spent: () => 0 });
  const [away, release, occupy] = [() => undefined, () => undefined, () => undefined];
  const settlements = { isAway: true, grantsShare: true, away, release, occupy, ask: () => Promise.reject() };
  const book = new SharedLimits({ book: { limitStatus: async () => ({}) }, local, settlements });
  const load = ({ isPlaced = true } = {}): Promise<Fault | "loaded"> =>
    assertMayLoad({ key: { id: "abc" }, books }, { model: "qwen3", isPlaced }, book).then(
      () => "loaded" as const,
      (thrown: unknown) => Fault.from(thrown),
    );
  return { clock, load };
}

test("a key without a limit of its own causes six loads in a minute, and is then told when the next one may begin", async () => {
  const { clock, load } = keyWith(undefined);
  for (let times = 0; times < 6; times += 1) expect(await load()).toBe("loaded");
  const refused = await load();
  expect(refused).toMatchObject({ code: "rate_limit_loads", param: "model", retryAfterSeconds: 10 });
  expect(refused).toHaveProperty("message", expect.stringMatching(/6 models a minute.*Try again in 10s/));
  await clock.advanceAwaiting(10_000);
  expect(await load()).toBe("loaded");
  expect(await load()).not.toBe("loaded");
});

test("a key with a limit of its own causes as many as that says, also where runtimes load by themselves", async () => {
  const { load } = keyWith({ loadsPerMinute: 1 });
  expect(await load({ isPlaced: false })).toBe("loaded");
  expect(await load({ isPlaced: false })).toMatchObject({ code: "rate_limit_loads" });
});

test("a key that may cause no load is refused whatever the clock says, and told by which name", async () => {
  const { load } = keyWith({ loadsPerMinute: 0 });
  expect(await load()).toMatchObject({ code: "loads_not_allowed", message: expect.stringContaining("qwen3") });
});

test("a key without a limit causes as many loads as it likes where runtimes load by themselves, as ever", async () => {
  const { load } = keyWith(undefined);
  for (let times = 0; times < 20; times += 1) expect(await load({ isPlaced: false })).toBe("loaded");
});

test("a request of a key over its loads goes to the machine that has its model in memory", async () => {
  const { run, answer } = await placing({ present: ["gpu-1", "gpu-2"], loaded: { "gpu-1": false, "gpu-2": true } });
  const outcome = run(undefined, { limits: { loadsPerMinute: 0 } });
  expect(await answer()).toBe("gpu-2 llama3");
  expect(await outcome).toBe("end");
});

test("a request of a key over its loads is refused with that where no machine has its model in memory", async () => {
  const { run, placed } = await placing({ present: ["gpu-1", "gpu-2"], loaded: { "gpu-1": false, "gpu-2": false } });
  expect(await run(undefined, { limits: { loadsPerMinute: 0 } })).toBe("loads_not_allowed");
  expect(placed()).toBe(0);
});
