import { expect, test } from "vitest";
import type { Chosen } from "../../../services/gateway/routing/choose-machine.ts";
import type { MemoryFacts } from "#shared/protocol/presence.ts";
import { type PlacementQuery } from "../../../services/gateway/routing/job-placements.ts";
import { modelOf, presenceOf } from "./machines-of-a-fleet.ts";
import { fleetOfAGateway } from "./fleet-of-a-gateway.ts";

const query: PlacementQuery = {
  kind: "chat",
  modelId: "llama3",
  needs: { capability: "completion", tools: false, imageParam: undefined, promptTokens: 100 },
  machines: undefined,
};

/** Two machines with one slot each, which have the model in memory or not. */
async function twoMachines(
  loaded: { readonly attic?: boolean; readonly cellar?: boolean },
  memory: { readonly attic?: MemoryFacts; readonly cellar?: MemoryFacts } = {},
) {
  const fleet = fleetOfAGateway({
    ask: async ({ machine }) => {
      const isLoaded = machine === "attic" ? loaded.attic : loaded.cellar;
      return [{ ...modelOf("llama3", { size_mb: 9_000 }), ...(isLoaded !== undefined && { loaded: isLoaded }) }];
    },
  });
  const { catalogues, placements } = fleet;
  const hear = (facts: typeof memory): void => {
    for (const name of ["attic", "cellar"] as const) fleet.hear(presenceOf(name, { memory: facts[name] }));
  };
  hear(memory);
  await catalogues.settled();
  hear(memory);
  const ranked = (): readonly Chosen[] => {
    const choice = placements.choose(query);
    return choice.outcome === "machines" ? choice.ranked : [];
  };
  /** Places one request, and returns its machine. */
  const place = (): string => {
    const [first] = ranked();
    if (first === undefined) throw new Error("no machine takes the request");
    placements.placed(first, query, { whole: false });
    return first.machine;
  };
  return { ranked, place, hear };
}

test("a request goes to the machine that has its model in memory, and says what a load would cost elsewhere", async () => {
  const { ranked } = await twoMachines({ attic: false, cellar: true });
  const [first, second] = ranked();
  expect([first?.machine, second?.machine]).toEqual(["cellar", "attic"]);
  // A model of 9,000 MB takes 10 s, and so does the return of those that made room for it.
  expect([first?.cost.loadMs, second?.cost.loadMs]).toEqual([0, 10_000]);
  expect(Math.round((second?.cost.totalMs ?? 0) - (first?.cost.totalMs ?? 0))).toBe(20_000);
});

test("a request waits for a slot beside the model rather than load it elsewhere, until loading costs less", async () => {
  const { place } = await twoMachines({ attic: false, cellar: true });
  const machines = Array.from({ length: 8 }, place);
  expect(machines.slice(0, 4)).toEqual(["cellar", "cellar", "cellar", "cellar"]);
  expect(machines).toContain("attic");
});

test("the requests of a burst join the load that the first one began", async () => {
  const { place } = await twoMachines({ attic: false, cellar: false });
  const [first, second, third] = [place(), place(), place()];
  expect([second, third]).toEqual([first, first]);
});

test("a machine that does not tell what is in memory is asked as before", async () => {
  const { ranked } = await twoMachines({});
  expect(ranked().map(({ cost }) => cost.loadMs)).toEqual([0, 0]);
});

/** The memory of a machine with 24,000 MB, and in it other models of this size, whose return costs this much each. */
function memoryWith(others: readonly { readonly memoryMb: number; readonly returnMs: number }[]): MemoryFacts {
  const takenMb = others.reduce((sum, { memoryMb }) => sum + memoryMb, 0);
  const residents = others.map((each, place) => ({ model: `other ${place}`, ...each }));
  return { totalMb: 24_000, freeMb: 24_000 - takenMb, residents };
}

test("a model is loaded where memory is free, else where those that make room are missed least", async () => {
  const away = { attic: false, cellar: false };
  const taken = memoryWith([{ memoryMb: 20_000, returnMs: 9_000 }]);
  const free = await twoMachines(away, { attic: taken, cellar: memoryWith([]) });
  expect(free.ranked().map(({ machine }) => machine)).toEqual(["cellar", "attic"]);
  expect(free.ranked().map(({ cost }) => Math.round(cost.delayMs))).toEqual([0, 9_000]);
  const unasked = memoryWith([{ memoryMb: 20_000, returnMs: 1_000 }]);
  const missed = await twoMachines(away, { attic: taken, cellar: unasked });
  expect(missed.ranked()[0]?.machine).toBe("cellar");
});

test("a machine whose kept models leave too little room is asked last, since a request would wait there in vain", async () => {
  const kept = { model: "kept", memoryMb: 20_000, returnMs: 0, isKept: true as const };
  const full = { ...memoryWith([{ memoryMb: 20_000, returnMs: 0 }]), residents: [kept] };
  const away = { attic: false, cellar: false };
  const dear = memoryWith([{ memoryMb: 20_000, returnMs: 60_000 }]);
  const { ranked } = await twoMachines(away, { attic: full, cellar: dear });
  expect(ranked().map(({ machine }) => machine)).toEqual(["cellar", "attic"]);
});

test("a load that any gateway caused is joined, with the time that is left of it", async () => {
  const free = memoryWith([]);
  const loading = { ...free, loading: { model: "llama3", percent: 60, leftMs: 4_000 } };
  const { ranked } = await twoMachines({ attic: false, cellar: false }, { attic: free, cellar: loading });
  expect(ranked().map(({ machine, cost }) => [machine, cost.loadMs])).toEqual([
    ["cellar", 4_000],
    ["attic", 10_000],
  ]);
});

test("presence says which models are in memory, although the catalogue stays as it is", async () => {
  const { ranked, hear } = await twoMachines({ attic: false, cellar: false });
  const resident = { model: "llama3", memoryMb: 10_000, returnMs: 0 };
  hear({ attic: memoryWith([]), cellar: { ...memoryWith([]), residents: [resident] } });
  expect(ranked().map(({ machine, cost }) => [machine, cost.loadMs])).toEqual([
    ["cellar", 0],
    ["attic", 10_000],
  ]);
  hear({ attic: { ...memoryWith([]), residents: [resident] }, cellar: memoryWith([]) });
  expect(ranked()[0]?.machine).toBe("attic");
});
