import { chosenOf } from "./offers.ts";
import { expect, test } from "vitest";
import type { Presence } from "#shared/protocol/presence.ts";
import type { JobPlacements, PlacementQuery } from "../../../services/gateway/routing/job-placements.ts";
import { blocksOfText } from "../../../services/gateway/routing/prompt-blocks.ts";
import { SeededRandom } from "../../harness/seeded-random.ts";
import { modelOf, presenceOf } from "./machines-of-a-fleet.ts";
import { fleetOfAGateway } from "./fleet-of-a-gateway.ts";

const wish: PlacementQuery = {
  kind: "chat",
  modelId: "llama3",
  needs: { capability: "completion", tools: false, imageParam: undefined },
  machines: undefined,
};
const names = Array.from({ length: 1_000 }, (_, place) => `gpu-${place}`);

/** A fleet of a thousand, all alike but for what is said here of each. */
async function fleet(
  of: (place: number) => Partial<Presence> = () => ({}),
  seed = 7,
  modelAt = (machine: string): string => (machine === "gpu-7" ? "rare" : "llama3"),
) {
  const seeded = new SeededRandom(seed);
  const { clock, roster, catalogues, placements, hear } = fleetOfAGateway({
    ask: async ({ machine }) => [modelOf(modelAt(machine))],
    random: () => seeded.between(0, 999_999) / 1_000_000,
  });
  names.forEach((name, place) => hear(presenceOf(name, of(place))));
  await catalogues.settled();
  for (const { presence } of roster.present(clock.now())) placements.loadReported(presence);
  const ask = (asked: Partial<PlacementQuery> & { readonly tried?: ReadonlySet<string> } = {}): readonly string[] => {
    const choice = placements.choose({ ...wish, ...asked }, asked.tried);
    return choice.outcome === "machines" ? choice.ranked.map(({ machine }) => machine) : [];
  };
  return { ask, placements };
}

test("every machine of a large fleet that is idle has its share of the requests", async () => {
  const { ask } = await fleet();
  const first = new Map<string, number>();
  for (let asked = 0; asked < 20_000; asked += 1) {
    const [best = "none"] = ask();
    first.set(best, (first.get(best) ?? 0) + 1);
  }
  expect(first.size).toBe(999);
  expect(Math.max(...first.values())).toBeLessThan(60);
});

test("gateways that start at once do not all begin with the same machines", async () => {
  const first = await Promise.all([1, 2, 3, 4].map(async (seed) => (await fleet(undefined, seed)).ask()));
  const [one = [], ...others] = first;
  expect(others.filter((other) => other.some((machine) => one.includes(machine)))).toEqual([]);
});

test("a request with many machines has enough of them to ask, and all of those have room", async () => {
  const { ask } = await fleet((place) => (place % 2 === 0 ? { running: 1 } : {}));
  const asked = ask();
  expect(asked.length).toBeGreaterThanOrEqual(8);
  expect(new Set(asked).size).toBe(asked.length);
  expect(asked.filter((name) => Number(name.slice(4)) % 2 === 0)).toEqual([]);
});

test("where few have room those come first, and all others after them", async () => {
  const { ask } = await fleet((place) => (place === 500 ? {} : { running: 1 }));
  const asked = ask();
  expect(asked[0]).toBe("gpu-500");
  expect(asked).toHaveLength(999);
});

test("the only one that has a model is found among a thousand", async () => {
  const { ask } = await fleet();
  expect(ask({ modelId: "rare" })).toEqual(["gpu-7"]);
  expect(ask({ modelId: "rare:latest" })).toEqual(["gpu-7"]);
});

test.each([
  ["a thousand", 2],
  ["two", 500],
])(
  "a key that may use name:latest alone is served by the one of %s that has that id, not by those that have name",
  async (_, every) => {
    const { ask, placements } = await fleet(undefined, 7, (machine) => {
      const place = Number(machine.slice(4));
      return place === 500 ? "llama3:latest" : place % every === 0 ? "llama3" : "other";
    });
    const asked = { modelId: "llama3:latest", isExact: true };
    expect(ask(asked)).toEqual(["gpu-500"]);
    expect(ask({ ...asked, isExact: false }).length).toBeGreaterThan(1);
    expect(placements.canPlace({ ...wish, ...asked, machines: names.slice(0, 500) })).toBe(false);
    expect(placements.canPlace({ ...wish, ...asked })).toBe(true);
  },
);

const prompt = blocksOfText("Once upon a time. ".repeat(200), 1);
const needs = { ...wish.needs, promptTokens: 900, prompt };

/** This machine has the conversation. */
function answered(placements: JobPlacements, machine: string): void {
  const chosen = chosenOf(machine, { epoch: presenceOf(machine).epoch });
  const timings = { queuedMs: 0, firstTokenMs: 1, totalMs: 2 };
  const end = { finishReason: "stop" as const, usage: null, timings };
  const job = placements.placed(chosen, { ...wish, needs }, { whole: false });
  job.accepted();
  job.ended({ end, receivedBytes: 10 });
}

test("a conversation goes back to the machine of a thousand that has it", async () => {
  const { ask, placements } = await fleet();
  answered(placements, "gpu-321");
  for (let asked = 0; asked < 20; asked += 1) expect(ask({ needs })[0]).toBe("gpu-321");
});

test("a conversation does not go back to a machine that its key may not use, or that has not the model any more", async () => {
  const { ask, placements } = await fleet();
  for (const machine of ["gpu-7", "gpu-321"]) answered(placements, machine);
  for (let asked = 0; asked < 20; asked += 1) {
    const machines = ask({ needs, machines: names.slice(0, 100) });
    expect(machines.filter((machine) => machine === "gpu-7" || machine === "gpu-321")).toEqual([]);
  }
});

test("neither what a key may not use nor what has tried is asked", async () => {
  const { ask } = await fleet();
  const machines = names.slice(0, 100);
  const tried = new Set(names.slice(0, 50));
  const asked = ask({ machines, tried });
  expect(asked.length).toBeGreaterThanOrEqual(8);
  expect(asked.every((name) => machines.includes(name) && !tried.has(name))).toBe(true);
});
