import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  chooseMachine,
  type Candidate,
  type Explained,
  type Needs,
} from "../../../services/gateway/fleet/choose-machine.ts";
import { loadOf } from "../../../services/gateway/fleet/expected-time.ts";
import { candidate, speed } from "./candidates-of-a-model.ts";

function explain(
  candidates: readonly Candidate[],
  { promptTokens, random = () => 0 }: { promptTokens?: number; random?: () => number } = {},
): readonly Explained[] {
  const needs: Needs = { capability: "completion", tools: false, imageParam: undefined, promptTokens };
  return chooseMachine({ candidates, needs, modelId: "llama3", random }).explain();
}

const order = (...given: Parameters<typeof explain>): string[] =>
  explain(...given).map(({ machine, reason }) => (reason === undefined ? machine : `${machine} (${reason})`));

const busy = { running: 1 };
const full = { running: 1, queued: 8 };

describe("machines are asked in the order in which they are expected to serve best", () => {
  test.each<[string, readonly Candidate[], string[], number?]>([
    [
      "one that was heard lately before one that was not",
      [candidate("silent", { status: "suspect" }), candidate("there", full)],
      ["there (full)", "silent (suspect)"],
    ],
    [
      "one whose breaker is open after all others, and still",
      [candidate("broken", { avoid: "breaker" }), candidate("silent", { status: "suspect" })],
      ["silent (suspect)", "broken (breaker)"],
    ],
    [
      "one that had the request already not at all",
      [candidate("tried", { avoid: "tried" }), candidate("other", busy)],
      ["other (busy)", "tried (tried)"],
    ],
    [
      "one whose window holds the prompt before one whose does not, by an estimate that leaves nobody out",
      [candidate("small", { window: 2_048 }), candidate("large", { window: 8_192, ...busy })],
      ["large (busy)", "small (small_window)"],
      4_000,
    ],
    [
      "one with a free slot before a faster one with a queue, and that before one whose queue is full",
      [
        candidate("full", { ...full, speed: speed(10) }),
        candidate("queue", { ...busy, speed: speed(10) }),
        candidate("free", { speed: speed(1_000) }),
      ],
      ["free", "queue (busy)", "full (full)"],
    ],
    [
      "of two with queues the one that is through with its own sooner",
      [
        candidate("short and slow", { running: 1, queued: 1, speed: speed(10_000) }),
        candidate("long and fast", { running: 1, queued: 3, speed: speed(500) }),
      ],
      ["long and fast (busy)", "short and slow (busy)"],
    ],
    [
      "the faster one, when it is faster by far",
      [candidate("slow", { speed: speed(5_000) }), candidate("fast", { speed: speed(1_000) })],
      ["fast", "slow (slower)"],
    ],
    [
      "not one that had the shorter answers to give",
      [
        candidate("short answers", { speed: speed(500, { answerTokens: 10, firstTokenMs: 100 }) }),
        candidate("long answers", { speed: speed(2_100, { answerTokens: 200, firstTokenMs: 100 }) }),
      ],
      ["long answers", "short answers (slower)"],
    ],
    [
      "one that was never measured as if it were the fastest",
      [
        candidate("slow", { speed: speed(5_000) }),
        candidate("new"),
        candidate("fast", { slots: 2, running: 1, speed: speed(1_000) }),
      ],
      ["new (drawn)", "fast (drawn)", "slow (slower)"],
    ],
    [
      "the one that has the conversation at hand before one that is as good and idle",
      [candidate("cold", { slots: 4 }), candidate("warm", { slots: 4, running: 3, warm: true })],
      ["warm (warm)", "cold (drawn)"],
    ],
    [
      "but not when others have a free slot and it has none",
      [candidate("warm", { ...busy, warm: true }), candidate("cold")],
      ["cold", "warm (busy)"],
    ],
    [
      "and also when it took some milliseconds longer, which nobody notices",
      [candidate("warm", { warm: true, speed: speed(90) }), candidate("cold", { speed: speed(10) })],
      ["warm (warm)", "cold (drawn)"],
    ],
    [
      "nor when it is slower by far",
      [candidate("warm", { warm: true, speed: speed(9_000) }), candidate("cold", { speed: speed(1_000) })],
      ["cold", "warm (slower)"],
    ],
    [
      "what was placed since the last presence counts as running",
      [candidate("placed", { pending: 1 }), candidate("free")],
      ["free", "placed (busy)"],
    ],
    [
      "and what has ended since as free",
      [candidate("ended", { ...busy, pending: -1 }), candidate("busy", busy)],
      ["ended", "busy (busy)"],
    ],
  ])("%s", (_, candidates, expected, promptTokens) => {
    const asked = promptTokens === undefined ? {} : { promptTokens };
    expect(order(candidates, asked)).toEqual(expected);
    expect(order(candidates.toReversed(), asked)).toEqual(expected);
  });

  test("a burst from one gateway spreads over equals evenly", () => {
    const placed = new Map(["a", "b", "c", "d"].map((machine) => [machine, 0]));
    for (let job = 0; job < 40; job += 1) {
      const fleet = [...placed].map(([machine, pending]) => candidate(machine, { slots: 10, pending }));
      const [first] = explain(fleet, { random: Math.random });
      const machine = first?.machine ?? "";
      placed.set(machine, (placed.get(machine) ?? 0) + 1);
    }
    for (const count of placed.values()) expect(Math.abs(count - 10)).toBeLessThanOrEqual(4);
  });

  test("gateways that do not know of each other do not all ask the same of equals first, and seldom the most loaded", () => {
    const fleet = [0, 1, 2, 3, 4, 5].map((running) => candidate(`gpu-${running}`, { slots: 8, running }));
    const first = new Map<string | undefined, number>();
    for (let gateway = 0; gateway < 3_000; gateway += 1) {
      const machine = explain(fleet, { random: Math.random })[0]?.machine;
      first.set(machine, (first.get(machine) ?? 0) + 1);
    }
    expect(first.get("gpu-0")).toBeGreaterThan(800);
    expect(first.get("gpu-0")).toBeLessThan(1_200);
    expect(first.get("gpu-1")).toBeGreaterThan(600);
    expect(first.has("gpu-5")).toBe(false);
  });
});

describe("whatever the fleet is like", () => {
  const fleets = fc.array(
    fc
      .record({
        state: fc.constantFrom(
          "ready" as const,
          "ready" as const,
          "ready" as const,
          "waiting" as const,
          "draining" as const,
        ),
        status: fc.constantFrom("present" as const, "present" as const, "suspect" as const, "offline" as const),
        avoid: fc.constantFrom(undefined, undefined, "tried" as const, "breaker" as const),
        window: fc.constantFrom(1_000, 4_000),
        slots: fc.nat(4),
        running: fc.nat(5),
        queued: fc.nat(5),
        queueMax: fc.nat(4),
        pending: fc.integer({ min: -3, max: 3 }),
        speed: fc.option(
          fc.record({
            firstTokenMs: fc.double({ min: 0, max: 1e6, noNaN: true }),
            restMs: fc.double({ min: 0, max: 1e6, noNaN: true }),
            answerTokens: fc.nat(10_000),
          }),
          { nil: undefined },
        ),
        warm: fc.boolean(),
      })
      .map(({ state, ...about }) => ({ state, about })),
    { maxLength: 9 },
  );
  const built = fleets.map((machines) =>
    machines.map(({ state, about }, place): Candidate => {
      const made = candidate(`gpu-${place}`, about);
      return { ...made, presence: { ...made.presence, state } };
    }),
  );
  const draws = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 20 });
  const each = (check: (candidates: readonly Candidate[], explained: readonly Explained[]) => void): void =>
    fc.assert(
      fc.property(built, draws, (candidates, numbers) => {
        let next = 0;
        const random = (): number => numbers[next++ % numbers.length] ?? 0;
        check(candidates, explain(candidates, { promptTokens: 2_000, random }));
      }),
      { numRuns: 1_000 },
    );
  const isAble = ({ presence, status, avoid }: Candidate): boolean =>
    presence.state === "ready" && status !== "offline" && avoid !== "tried";

  test("every machine is told of once, and those that are ranked are just those that are able", () => {
    each((candidates, explained) => {
      const names = candidates.map(({ presence }) => presence.machine);
      expect(explained.map(({ machine }) => machine).toSorted()).toEqual(names.toSorted());
      const ranked = explained.filter(({ verdict }) => verdict === "ranked");
      const able = candidates.filter(isAble).map(({ presence }) => presence.machine);
      expect(ranked.map(({ machine }) => machine).toSorted()).toEqual(able.toSorted());
      expect(ranked.map(({ rank }) => rank)).toEqual(ranked.map((_, place) => place + 1));
      for (const { verdict, reason } of explained) if (verdict === "left-out") expect(reason).toBeDefined();
    });
  });

  test("one with a free slot never comes after one with a queue unless it is silent, broken or too small", () => {
    each((candidates, explained) => {
      const ranked = explained.filter(({ verdict }) => verdict === "ranked");
      const about = new Map(candidates.map((one) => [one.presence.machine, one]));
      for (const [place, { machine }] of ranked.entries()) {
        const one = about.get(machine);
        if (one === undefined || loadOf(one.presence, one.pending ?? 0).room !== "slot") continue;
        if (one.status === "suspect" || one.avoid === "breaker" || one.catalogue[0]?.context_window === 1_000) continue;
        for (const before of ranked.slice(0, place)) expect([machine, before.load.room]).toEqual([machine, "slot"]);
      }
    });
  });

  test("one that is put behind for what is against it is told why", () => {
    each((_, explained) => {
      for (const { verdict, reason, status, load } of explained) {
        if (verdict !== "ranked") continue;
        if (status === "suspect") expect(["suspect", "breaker"]).toContain(reason);
        if (load.room !== "slot") expect(["suspect", "breaker", "small_window", "busy", "full"]).toContain(reason);
      }
    });
  });
});
