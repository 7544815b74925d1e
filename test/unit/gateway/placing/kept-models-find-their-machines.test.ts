import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { MemoryFacts } from "#shared/protocol/presence.ts";
import type { KeepRecord } from "#shared/records/keep-record.ts";
import { type KeepingMachine, planKeeps } from "../../../../services/gateway/placing/plan-keeps.ts";
import { modelOf } from "../machines-of-a-fleet.ts";

let made = 0;
function keep(name: string, copies: number, machines?: string[]): KeepRecord {
  made += 1;
  return { name, version: 1, copies, machines, createdAt: made, changedAt: made };
}

/** A machine with 24,000 MB that offers models of this size. */
function machine(
  name: string,
  sizes: Readonly<Record<string, number>>,
  memory: Partial<MemoryFacts> = {},
  permits = true,
): KeepingMachine {
  const offered = new Map(Object.entries(sizes).map(([id, mb]) => [id, { ...modelOf(id), memory_mb: mb }]));
  const facts: MemoryFacts = { totalMb: 24_000, freeMb: 24_000, isPlaced: true, residents: [], ...memory };
  return { machine: name, memory: facts, offered, permits: () => permits };
}

const resident = (model: string, memoryMb: number) => ({ model, memoryMb, returnMs: 0 });
const told = (plan: ReturnType<typeof planKeeps>) =>
  Object.fromEntries([...plan.told].filter(([, models]) => models.length > 0));

test("a model goes where it is in memory, then where it is installed, then to the roomiest that may pull it", () => {
  const machines = [
    machine("empty", {}, { canPull: true, totalMb: 48_000 }),
    machine("installed", { llama3: 5_000 }),
    machine("loaded", { llama3: 5_000 }, { residents: [resident("llama3", 5_000)] }),
  ];
  expect(told(planKeeps([keep("llama3", 1)], machines))).toEqual({ loaded: ["llama3"] });
  const { steps } = planKeeps([keep("llama3", 3)], machines);
  expect(steps.map(({ machine: where, state }) => [where, state])).toEqual([
    ["loaded", "load"],
    ["installed", "load"],
    ["empty", "pull"],
  ]);
});

test("a machine that keeps a model goes on, whatever another one has to offer", () => {
  const kept = { keeps: [{ model: "llama3", state: "waits" as const, why: "no room" }], freeMb: 0 };
  const machines = [machine("attic", { llama3: 5_000 }, kept), machine("cellar", { llama3: 5_000 })];
  const { steps } = planKeeps([keep("llama3", 1)], machines);
  expect(steps).toEqual([{ model: "llama3", machine: "attic", state: "waits", why: "no room" }]);
});

test("a copy that no machine can have is told with the reason of each", () => {
  const machines = [
    machine("barred", { llama3: 5_000 }, {}, false),
    machine("full", { llama3: 5_000, big: 22_000 }),
    machine("without", {}),
    machine("disk", {}, { canPull: true, diskFreeMb: 100 }),
  ];
  const { steps } = planKeeps([keep("big", 1, ["full"]), keep("llama3", 1)], machines);
  expect(steps.at(-1)).toMatchObject({ model: "llama3", machine: undefined, state: "unmet" });
  for (const why of [
    /barred may not offer it/,
    /full has no room/,
    /without .*may not pull/,
    /disk has too little disk/,
  ])
    expect(steps.at(-1)?.why).toMatch(why);
  expect(planKeeps([keep("llama3", 1)], []).steps[0]?.why).toMatch(/TRUNKLINE_MANAGE=place/);
});

test("only the machines that are named keep a model", () => {
  const machines = [machine("attic", { llama3: 5_000 }), machine("cellar", { llama3: 5_000 })];
  expect(told(planKeeps([keep("llama3", 1, ["cellar"])], machines))).toEqual({ cellar: ["llama3"] });
});

test("an older wish is not moved by a newer one, and no machine is told to keep more than its memory holds", () => {
  const name = fc.constantFrom("a", "b", "c", "d");
  const wishes = fc.uniqueArray(fc.record({ name, copies: fc.integer({ min: 1, max: 3 }) }), {
    selector: ({ name: each }) => each,
  });
  const sizes = fc.dictionary(name, fc.integer({ min: 1_000, max: 20_000 }));
  fc.assert(
    fc.property(wishes, fc.array(sizes, { maxLength: 4 }), (wished, machines) => {
      const keeps = wished.map(({ name: model, copies }) => keep(model, copies));
      const fleet = machines.map((each, place) => machine(`m${place}`, each));
      const plan = planKeeps(keeps, fleet);
      for (const { machine: where, offered } of fleet) {
        const sum = (plan.told.get(where) ?? []).reduce((mb, id) => mb + (offered.get(id)?.memory_mb ?? 0), 0);
        expect(sum).toBeLessThanOrEqual(24_000);
      }
      for (const { name: model, copies } of keeps)
        expect(plan.steps.filter((step) => step.model === model)).toHaveLength(copies);
      const before = planKeeps(keeps.slice(0, -1), fleet);
      expect(plan.steps.slice(0, before.steps.length)).toEqual(before.steps);
    }),
  );
});
