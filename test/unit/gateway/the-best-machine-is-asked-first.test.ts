import * as fc from "fast-check";
import { expect, test } from "vitest";
import { chooseMachine, type Candidate, type Needs } from "../../../services/gateway/routing/choose-machine.ts";
import { type Explained, explainChoice } from "../../../services/gateway/routing/explain-routing.ts";
import { candidate, speed, work } from "./candidates-of-a-model.ts";

function explain(
  candidates: readonly Candidate[],
  { promptTokens, random = () => 0 }: { promptTokens?: number | undefined; random?: () => number } = {},
): readonly Explained[] {
  const needs: Needs = { capability: "completion", tools: false, imageParam: undefined, promptTokens };
  return explainChoice(chooseMachine({ candidates, needs, random }));
}

const order = (...given: Parameters<typeof explain>): string[] =>
  explain(...given).map(({ machine, reason }) => (reason === undefined ? machine : `${machine} (${reason})`));

const busy = { running: 1 };
const idle = { jobs: 0, backlogTokens: 0 };
/** A machine that takes 0.1 ms for each token of the prompt, unless it is said otherwise. */
const asked = (machine: string, promptTokens: number, about: Parameters<typeof candidate>[1] = {}): Candidate =>
  candidate(machine, { speed: speed(0.1), work: work(promptTokens), ...about });
const full = { running: 1, queued: 8 };

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
    "one with a free slot before one with a queue, and that before one whose queue is full, however fast",
    [asked("full", 9, { ...full, speed: speed(0.01) }), asked("queue", 9, busy), asked("free", 9)],
    ["free (drawn)", "queue (busy)", "full (full)"],
  ],
  [
    "the machine that is through with its queue sooner is asked first of two with queues",
    [
      asked("short and slow", 100, { ...busy, queued: 1, speed: speed(10) }),
      asked("long and fast", 100, { ...busy, queued: 3 }),
    ],
    ["long and fast (busy)", "short and slow (busy)"],
  ],
  [
    "the faster one, by what the prompt takes",
    [asked("slow", 1_000, { speed: speed(0.4) }), asked("fast", 1_000)],
    ["fast (drawn)", "slow (slower)"],
  ],
  [
    "the one near by of two that are as fast",
    [asked("far", 100, { speed: speed(0.1, { beginMs: 200 }) }), asked("near", 100)],
    ["near (drawn)", "far (slower)"],
  ],
  [
    "one that was never measured as if it were one of the others",
    [
      asked("slow", 1_000, { speed: speed(5) }),
      asked("new", 1_000, { speed: undefined }),
      asked("usual", 1_000, { speed: speed(1, { beginMs: 10 }) }),
      asked("fast", 1_000),
    ],
    ["fast (drawn)", "new (slower)", "usual (slower)", "slow (slower)"],
  ],
  [
    "the one that has the prompt cached before an idle one, when that is worth more than the others there",
    [
      asked("cold", 4_000, { slots: 4 }),
      asked("warm", 4_000, { slots: 4, running: 3, work: work(4_000, { cachedTokens: 3_900 }) }),
    ],
    ["warm (warm)", "cold (slower)"],
  ],
  [
    "but not when to wait for a slot takes longer than the prompt",
    [
      candidate("warm", { ...busy, speed: speed(0.1, { answerMs: 1_000 }), work: work(500, { cachedTokens: 400 }) }),
      asked("cold", 500),
    ],
    ["cold (drawn)", "warm (busy)"],
  ],
  [
    "and the waiting is worth it for a prompt that takes longer",
    [asked("warm", 20_000, { ...busy, work: work(20_000, { cachedTokens: 19_900 }) }), asked("cold", 20_000)],
    ["warm (busy)", "cold (slower)"],
  ],
  [
    "the warm one also when it costs some milliseconds more",
    [asked("warm", 300, { work: work(300, { cachedTokens: 100 }) }), asked("cold", 300, { speed: speed(0.06) })],
    ["warm (warm)", "cold (drawn)"],
  ],
  [
    "not the warm one when that costs far more than the few cached tokens save",
    [
      asked("warm", 60, { slots: 16, running: 15, work: work(60, { cachedTokens: 40 }) }),
      asked("just started", 60, { slots: 16, speed: speed(0.1, { beginMs: 1 }) }),
    ],
    ["just started (drawn)", "warm (slower)"],
  ],
  [
    "not the one that has other prompts to compute first",
    [
      asked("behind", 100, { slots: 8, known: { jobs: 1, backlogTokens: 8_000 } }),
      asked("ready", 100, { slots: 8, known: { jobs: 1, backlogTokens: 0 } }),
    ],
    ["ready (drawn)", "behind (slower)"],
  ],
  [
    "not the one whose many answers a long prompt would halt, though it has slots for hundreds",
    [asked("crowded", 2_000, { slots: 256, running: 30 }), asked("calm", 2_000, { slots: 8, running: 2 })],
    ["calm (drawn)", "crowded (slower)"],
  ],
  [
    "by the jobs that gateways placed there, and not by what its presence counts",
    [candidate("placed", { known: { jobs: 1, backlogTokens: 0 } }), candidate("free", { ...busy, known: idle })],
    ["free (drawn)", "placed (busy)"],
  ],
])(
  "machines are asked in the order in which they are expected to serve best: %s",
  (_, candidates, expected, promptTokens) => {
    expect(order(candidates, { promptTokens })).toEqual(expected);
    expect(order(candidates.toReversed(), { promptTokens })).toEqual(expected);
  },
);

test("a burst from one gateway spreads over equals evenly", () => {
  const placed = new Map(["a", "b", "c", "d"].map((machine) => [machine, 0]));
  for (let job = 0; job < 40; job += 1) {
    const fleet = [...placed].map(([machine, jobs]) => {
      const known = { jobs, backlogTokens: 500 * jobs };
      return candidate(machine, { slots: 10, known, speed: speed(0.1), work: work(500) });
    });
    const [first] = explain(fleet, { random: Math.random });
    const machine = first?.machine ?? "";
    placed.set(machine, (placed.get(machine) ?? 0) + 1);
  }
  for (const count of placed.values()) expect(Math.abs(count - 10)).toBeLessThanOrEqual(4);
});

test("equals are drawn, so that gateways do not all begin with the same machine", () => {
  const fleet = ["a", "b", "c"].map((machine) => candidate(machine, { slots: 8 }));
  const first = new Map<string | undefined, number>();
  for (let gateway = 0; gateway < 3_000; gateway += 1) {
    const machine = explain(fleet, { random: Math.random })[0]?.machine;
    first.set(machine, (first.get(machine) ?? 0) + 1);
  }
  for (const machine of ["a", "b", "c"]) expect(first.get(machine)).toBeGreaterThan(800);
});

test("machines that were measured a few milliseconds apart are drawn as equals", () => {
  const fleet = [3, 5, 7, 15].map((beginMs) => candidate(`${beginMs}`, { slots: 8, speed: speed(0.1, { beginMs }) }));
  const first = new Set<string | undefined>();
  for (let draw = 0; draw < 100; draw += 1) first.add(explain(fleet, { random: Math.random })[0]?.machine);
  expect(first).toEqual(new Set(["3", "5", "7"]));
});

const times = fc.double({ min: 0, max: 1e6, noNaN: true });
const fleets = fc.array(
  fc
    .record({
      state: fc.constantFrom<Candidate["presence"]["state"][]>("ready", "ready", "ready", "waiting", "draining"),
      status: fc.constantFrom<Candidate["status"][]>("present", "present", "suspect", "offline"),
      avoid: fc.constantFrom<Candidate["avoid"][]>(undefined, undefined, "tried", "breaker"),
      window: fc.constantFrom(1_000, 4_000),
      slots: fc.nat(4),
      running: fc.nat(5),
      queued: fc.nat(5),
      queueMax: fc.nat(4),
      known: fc.option(fc.record({ jobs: fc.nat(12), backlogTokens: fc.nat(100_000) }), { nil: undefined }),
      speed: fc.option(
        fc.record({ beginMs: times, promptTokenMs: times, tokenMs: times, jobTokenMs: times, answerMs: times }),
        { nil: undefined },
      ),
      work: fc.record({ promptTokens: fc.nat(200_000), cachedTokens: fc.nat(200_000), answerTokens: fc.nat(10_000) }),
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

test("a machine that is broken, silent, too small or full comes after all that are not, and costs rise among the others", () => {
  each((candidates, explained) => {
    const windows = new Map(candidates.map(({ presence, model }) => [presence.machine, model?.context_window]));
    const isGood = ({ machine, status, load, reason }: Explained): boolean =>
      reason !== "breaker" && status === "present" && load.room !== "none" && windows.get(machine) === 4_000;
    const ranked = explained.filter(({ verdict }) => verdict === "ranked");
    const good = ranked.filter(isGood);
    expect(ranked.slice(0, good.length)).toEqual(good);
    const costs = good.map(({ cost }) => cost?.totalMs ?? NaN);
    const least = Math.min(...costs);
    const others = costs.filter((cost) => cost > least + 205);
    expect(others).toEqual(others.toSorted((one, other) => one - other));
    expect(costs.slice(costs.length - others.length)).toEqual(others);
  });
});

test("a machine that is put behind for what is against it is told why", () => {
  each((_, explained) => {
    for (const { verdict, reason, status, load } of explained) {
      if (verdict !== "ranked") continue;
      if (status === "suspect") expect(["suspect", "breaker"]).toContain(reason);
      if (load.room === "none") expect(["suspect", "breaker", "small_window", "full"]).toContain(reason);
      if (load.room === "queue") expect(["suspect", "breaker", "small_window", "busy"]).toContain(reason);
    }
  });
});
