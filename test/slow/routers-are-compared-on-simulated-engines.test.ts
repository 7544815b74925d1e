import { describe, expect, test } from "vitest";
import { Engine, type EngineRequest, type EngineSpec } from "../bench/routing/engine.ts";
import { chatRequest, engineRequest } from "../bench/routing/engine-prompt.ts";
import { blocksOf } from "../bench/routing/prefix-cache.ts";
import { chooserOf, costOf } from "../bench/routing/references.ts";
import { remarks, resultOf, resultTable } from "../bench/routing/results.ts";
import { simulatedGateways } from "../bench/routing/simulated-gateways.ts";
import {
  simulate,
  type Simulated,
  simulatedReference,
  type SimulatedResult,
  type SimulatedRouter,
} from "../bench/routing/simulation.ts";
import { type Session, workloads } from "../bench/routing/workloads.ts";
import { SeededRandom } from "../harness/seeded-random.ts";

const spec: EngineSpec = { slots: 2, cacheTokens: 320, prefillTokensPerSecond: 1_000, stepMs: 10, stepMsPerAnswer: 1 };
let lastId = 0;

/** A request whose prompt is one letter again and again, so that prompts of one letter share their beginning. */
function asking(letter: string, promptTokens: number, answerTokens = 1): EngineRequest {
  const [prompt, answer] = [letter.repeat(promptTokens * 4), "x".repeat(answerTokens * 4)];
  const [promptBlocks, allBlocks] = [blocksOf(prompt), blocksOf(prompt + answer)];
  return { id: (lastId += 1), promptTokens, answerTokens, promptBlocks, allBlocks };
}

/** Runs all that an engine has to do, and returns when each request had its first and its last token. */
function runToEnd(engine: Engine): Map<number, { cachedTokens: number; firstMs: number; lastMs: number }> {
  const times = new Map<number, { cachedTokens: number; firstMs: number; lastMs: number }>();
  let nowMs = 0;
  for (let durationMs = engine.begin(); durationMs !== undefined; durationMs = engine.begin()) {
    nowMs += durationMs;
    for (const { request, cachedTokens } of engine.end()) {
      times.set(request.id, { cachedTokens, firstMs: times.get(request.id)?.firstMs ?? nowMs, lastMs: nowMs });
    }
  }
  return times;
}

test("a simulated engine computes only the part of a prompt that its cache lacks", () => {
  const engine = new Engine(spec);
  engine.submit(asking("a", 160));
  runToEnd(engine);
  const [longer, other] = [asking("a", 200), asking("b", 160)];
  for (const request of [longer, other]) engine.submit(request);
  const times = runToEnd(engine);
  expect(times.get(longer.id)).toMatchObject({ cachedTokens: 160, firstMs: 200 });
  expect(times.get(other.id)).toMatchObject({ cachedTokens: 0, firstMs: 200 });
});

test("a simulated engine computes the last token of a prompt that is cached as a whole", () => {
  const engine = new Engine(spec);
  const [first, again] = [asking("a", 160), asking("a", 160)];
  for (const request of [first, again]) {
    engine.submit(request);
    expect(runToEnd(engine).get(request.id)).toMatchObject({ firstMs: request === first ? 160 : 1 });
  }
});

test("a simulated engine drops the least recently used prompt from a full cache, the end of it first", () => {
  const engine = new Engine(spec);
  for (const letter of ["a", "b", "a", "c"]) {
    engine.submit(asking(letter, 160));
    runToEnd(engine);
  }
  const cached = ["a", "b", "c"].map((letter) => engine.cache.cachedTokens(asking(letter, 160).promptBlocks));
  expect(cached).toEqual([160, 0, 160]);
  engine.cache.keep(asking("d", 80).promptBlocks);
  expect(engine.cache.cachedTokens(asking("a", 160).promptBlocks)).toBe(80);
});

test("a simulated engine answers more slowly in a larger batch and lets requests beyond its slots wait", () => {
  const engine = new Engine({ ...spec, prefillTokensPerSecond: Infinity });
  const [one, two, three] = [asking("a", 16, 11), asking("b", 16, 11), asking("c", 16, 11)];
  for (const request of [one, two, three]) engine.submit(request);
  const times = runToEnd(engine);
  expect([one, two, three].map(({ id }) => times.get(id)?.lastMs)).toEqual([120, 120, 230]);
});

test("a simulated engine finds the whole of a turn and its answer in the prompt of the next turn", () => {
  const user = { role: "user", content: "Tell me of the sea, at length, with all its fish. [answer 40]" };
  const turn = engineRequest(1, chatRequest.parse({ model: "m", messages: [user] }));
  const messages = [user, { role: "assistant", content: turn.answer }, { role: "user", content: "And? [answer 9]" }];
  const next = engineRequest(2, chatRequest.parse({ model: "m", messages }));
  expect([turn.request.answerTokens, next.request.answerTokens]).toEqual([40, 9]);
  expect(next.request.promptBlocks.slice(0, turn.request.allBlocks.length)).toEqual(turn.request.allBlocks);
  const salted = engineRequest(3, chatRequest.parse({ model: "m", messages: [user], cache_salt: "another key" }));
  expect(salted.request.promptBlocks[0]).not.toBe(turn.request.promptBlocks[0]);
});

describe("a workload", () => {
  test.each(workloads)("$name is the same for one seed and another for the next", ({ sessions }) => {
    const of = (seed: number): readonly Session[] => sessions(new SeededRandom(seed));
    expect(of(1)).toEqual(of(1));
    expect(of(1)).not.toEqual(of(2));
  });
});

describe("the oracle", () => {
  const engines = (): [Engine, Engine] => [new Engine(spec), new Engine(spec)];
  const choose = chooserOf("oracle", new SeededRandom(1));

  test("the oracle prefers the machine that has the prompt cached, until others wait there for longer than the prompt takes", () => {
    const [cold, warm] = engines();
    const request = asking("a", 160);
    warm.cache.keep(request.promptBlocks);
    expect(choose(request, [cold, warm])).toBe(warm);
    for (const letter of ["b", "c", "d"]) warm.submit(asking(letter, 160));
    expect(choose(request, [cold, warm])).toBe(cold);
  });

  test("the oracle counts what a request adds to the time of the answers that run there", () => {
    const added = (given: Partial<EngineSpec>): number => {
      const [idle, busy] = [new Engine({ ...spec, ...given }), new Engine({ ...spec, ...given })];
      busy.submit(asking("b", 16, 100));
      busy.begin();
      busy.end();
      return costOf(busy, asking("a", 160, 10)) - costOf(idle, asking("a", 160, 10));
    };
    // The prompt halts the other answer for 160 ms; each of its ten tokens makes one of the other's later by 1 ms.
    expect(added({ stepMsPerAnswer: 0 })).toBeCloseTo(0.3 * 160);
    expect(added({ prefillTokensPerSecond: Infinity })).toBeCloseTo(0.3 * (10 + 10));
  });

  test("the oracle has more cache hits and a sooner first token than round robin, in simulated time", () => {
    const [blind, informed] = (["round-robin", "oracle"] as const).map((name) =>
      resultIn("documents", simulatedReference(name)),
    );
    expect(informed?.hitShare).toBeGreaterThan(0.8);
    expect(blind?.hitShare).toBeLessThan(0.5);
    expect(informed?.firstMs).toBeLessThan((blind?.firstMs ?? 0) / 2);
  });

  test("the oracle finds nothing to reuse in texts of mixed lengths", () => {
    expect(resultIn("mixed", simulatedReference("oracle")).hitShare).toBe(0);
  });
});

describe.each([1, 2, 4])("%i gateways that tell each other their placements", (gateways) => {
  /** The results of the gateways beside those of the oracle, which knows each cache, each load and each answer's length. */
  const beside = (workload: string) => {
    const ours = resultIn(workload, simulatedGateways(gateways));
    const oracle = resultIn(workload, simulatedReference("oracle"));
    return {
      hitsLost: oracle.hitShare - ours.hitShare,
      first: ours.firstMs / oracle.firstMs,
      p99: ours.totalP99Ms / oracle.totalP99Ms,
    };
  };

  test.each(["chats", "agents", "documents", "tools", "joins", "leaves"])(
    "find nearly as much cached as the oracle in the workload %s",
    (workload) => {
      const { hitsLost, first } = beside(workload);
      expect(hitsLost).toBeLessThan(0.06);
      expect(first).toBeLessThan(1.8);
    },
  );

  test.each(["mixed", "mixed-256", "burst"])("spread the workload %s nearly as the oracle does", (workload) => {
    const { first, p99 } = beside(workload);
    expect(first).toBeLessThan(1.35);
    expect(p99).toBeLessThan(1.8);
  });
});

test.each(["chats", "documents", "mixed"])(
  "a slow machine that lies about its load, its cache and its tokens attracts few more requests in the workload %s",
  (workload) => {
    const slow = 2;
    const servedBySlow = (liar?: number): number => {
      const results = resultsIn(workload, simulatedGateways(2, liar));
      return results.reduce((sum, { served }) => sum + (served[slow] ?? 0), 0);
    };
    const honest = servedBySlow();
    expect(honest).toBeGreaterThan(0);
    expect(servedBySlow(slow)).toBeLessThan(1.5 * honest);
  },
);

describe("the report", () => {
  const asked = { firstMs: 100, totalMs: 900, answer: "Hello", why: "" };
  const run = {
    workload: "chats",
    router: "oracle",
    seed: 1,
    hitShare: 0.5,
    engineFirstMs: 60,
    cpu: { bench: 0.1, host: 0.2 },
  };
  const of = (seed: number, firstMs: number) => resultOf({ ...run, seed }, [{ ...asked, firstMs }]);

  test("the report shows the median over the seeds", () => {
    const [, row] = resultTable([of(1, 100), of(2, 900), of(3, 300)]).split("\n");
    expect(row?.split(/ +/)).toEqual([
      "chats",
      "oracle",
      "50",
      "300",
      "240.0",
      "300",
      "900",
      "1",
      "0",
      "10",
      "20",
      "3",
    ]);
  });

  test("the report leaves failed requests out of the times and names the first reason", () => {
    const failed = { ...asked, firstMs: 0, answer: undefined, why: "503: agent_offline" };
    const result = resultOf(run, [asked, failed]);
    expect(result).toMatchObject({ requests: 2, failed: 1, firstMs: 100 });
    expect(remarks([result])).toEqual([
      "The bench used at most 10 % of the CPU, and the host 20 %.",
      "chats, oracle, seed 1: 1 of 2 failed; the first: 503: agent_offline",
    ]);
  });

  test("the report says when the host was too busy for times", () => {
    const busy = resultOf({ ...run, cpu: { bench: 0.1, host: 0.61 } }, [asked]);
    expect(remarks([of(1, 100), busy])[1]).toBe(
      "In 1 of 2 runs the host used more than 60 %: their times may be too long.",
    );
  });
});

/** Returns the result of three seeds that is the median by time to the first token. */
function resultIn(name: string, router: Parameters<typeof resultsIn>[1]): SimulatedResult {
  const [, middle] = resultsIn(name, router).toSorted((one, other) => one.firstMs - other.firstMs);
  if (middle === undefined) throw new Error("no results");
  return middle;
}

/** Runs a workload on simulated engines with three seeds. */
function resultsIn(name: string, router: (simulated: Simulated) => SimulatedRouter): readonly SimulatedResult[] {
  const workload = workloads.find((each) => each.name === name);
  if (workload === undefined) throw new Error(`no workload ${name}`);
  return [1, 2, 3].map((seed) => simulate(workload, { seed, router }));
}
