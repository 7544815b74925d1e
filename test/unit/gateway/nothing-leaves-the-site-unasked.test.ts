import { chosenOf } from "./offers.ts";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { type KeyRecord } from "#shared/records/key-record.ts";
import { allows } from "#shared/records/match-scope.ts";
import type { RouteTable } from "../../../services/gateway/fleet/route-records.ts";
import type { MachineRecord } from "#shared/records/machine-record.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { listModels, resolveModel } from "../../../services/gateway/requests/resolve-model.ts";
import type { Needs } from "../../../services/gateway/routing/choose-machine.ts";
import { type ModelTarget } from "../../../services/gateway/routing/job-placements.ts";
import { MachineRecords } from "../../../services/gateway/fleet/machine-records.ts";
import { blocksOfText } from "../../../services/gateway/routing/prompt-blocks.ts";
import { type MachineAnswer, mergeCatalogues } from "../../../services/gateway/jobs/live-models.ts";
import { end } from "./follower-on-a-wire.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";
import { modelOf, presenceOf, recordOf } from "./machines-of-a-fleet.ts";
import { key, tableOf } from "./routes-and-keys.ts";
import { fleetOfAGateway } from "./fleet-of-a-gateway.ts";

const ids = ["a", "b", "b:latest", "c:1"];
const names = ["a", "b", "name", "name-x"];
const machineNames = Array.from({ length: 6 }, (_, place) => `m${place}`);
const prompt = blocksOfText("Once upon a time. ".repeat(100), 1);
const needs: Needs = { capability: "completion", tools: false, imageParam: undefined, promptTokens: 450, prompt };

interface Machine {
  readonly isExternal: boolean;
  readonly models: readonly string[];
  readonly slots: number;
}

/** What a gateway knows of its machines, and how it ranks them. The last machine ran every conversation before. */
async function gatewayWith(machines: readonly (Machine & { readonly name: string })[]) {
  const external = new Set(machines.flatMap(({ name, isExternal }) => (isExternal ? [name] : [])));
  const { catalogues, placements, hear } = fleetOfAGateway({
    ask: async ({ machine }) => (machines.find(({ name }) => name === machine)?.models ?? []).map((id) => modelOf(id)),
    random: Math.random,
    external,
  });
  for (const { name, slots } of machines) hear(presenceOf(name, { slots }));
  await catalogues.settled();
  const last = machines.at(-1);
  if (last !== undefined) {
    const chosen = chosenOf(last.name, { epoch: presenceOf(last.name).epoch, model: modelOf("a") });
    const wish = { kind: "chat", modelId: "a", machines: undefined, needs } as const;
    const job = placements.placed(chosen, wish, { whole: false });
    job.accepted();
    job.ended({ end, receivedBytes: 10 });
  }
  const answers: readonly MachineAnswer[] = machines.map(({ name, models, isExternal }) => ({
    machine: name,
    external: isExternal,
    answer: models.map((id) => modelOf(id)),
  }));
  return { placements, external, answers };
}

const aMachine = fc.record({
  isExternal: fc.boolean(),
  models: fc.uniqueArray(fc.constantFrom(...ids), { minLength: 1 }),
  slots: fc.nat(2),
});
const aTarget = fc.record(
  {
    model: fc.constantFrom(...ids, "name"),
    machines: fc.uniqueArray(fc.constantFrom(...machineNames), { minLength: 1 }),
    label: fc.constantFrom("fast", "slow"),
    external: fc.constant(true as const),
  },
  { requiredKeys: ["model"] },
);
const someRoutes = fc.dictionary(fc.constantFrom(...names, "*", "name*"), fc.array(aTarget, { minLength: 1 }), {
  maxKeys: 4,
});
const aKey = fc.record(
  {
    scopes: fc.uniqueArray(fc.constantFrom("*", ...ids, ...names), { minLength: 1 }),
    machines: fc.uniqueArray(fc.constantFrom(...machineNames), { minLength: 1 }),
    external: fc.constant(true as const),
  },
  { requiredKeys: ["scopes"] },
);

function targetsOf(asked: string, holder: KeyRecord, table: RouteTable): readonly ModelTarget[] {
  try {
    return resolveModel(asked, holder, table).targets;
  } catch (thrown) {
    expect(Fault.from(thrown).code).toBe("model_not_found");
    return [];
  }
}

test("a request leaves the site only by a route that says so, for a key issued for it, within its scopes", async () => {
  let leaving = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(aMachine, { minLength: 1, maxLength: machineNames.length }),
      // In a fleet of more than 32 machines some are drawn.
      fc.constantFrom(1, 12),
      someRoutes,
      aKey,
      fc.constantFrom(...ids, ...names),
      async (fleet, times, given, terms, asked) => {
        const machines = Array.from({ length: times }, () => fleet)
          .flat()
          .map((machine, place) => ({ ...machine, name: `m${place}` }));
        const { placements, external } = await gatewayWith(machines);
        const table = tableOf(given);
        const holder = key(terms);
        for (const target of targetsOf(asked, holder, table)) {
          const wish = { kind: "chat", needs, ...target } as const;
          const tried = new Set(machines.slice(0, 1).map(({ name }) => name));
          const asking = [placements.choose(wish), placements.choose(wish, tried), placements.explain(wish)];
          const chosen = asking.flatMap((choice) => (choice.outcome === "machines" ? choice.ranked : []));
          if (placements.canPlace(wish)) expect(placements.explain(wish).outcome).toBe("machines");
          for (const { machine, model } of chosen) {
            expect(allows(holder.scopes, asked) && allows(holder.scopes, model.id)).toBe(true);
            expect(holder.machines?.includes(machine) ?? true).toBe(true);
            if (!external.has(machine)) continue;
            leaving += 1;
            const route = table.find(asked);
            const isAsked = route?.targets.some(
              (each) => each.external && each.model === target.modelId && (each.machines?.includes(machine) ?? true),
            );
            expect([holder.external, isAsked]).toEqual([true, true]);
          }
        }
      },
    ),
    { numRuns: 300 },
  );
  expect(leaving).toBeGreaterThan(0);
});

test("a list of models has what only runs elsewhere under the name of such a route, for such a key, and not otherwise", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(aMachine, { minLength: 1, maxLength: machineNames.length }),
      someRoutes,
      aKey,
      async (fleet, given, terms) => {
        const machines = fleet.map((machine, place) => ({ ...machine, name: `m${place}` }));
        const { answers } = await gatewayWith(machines);
        const table = tableOf(given);
        const holder = key(terms);
        const seen = answers.filter(({ external }) => holder.external || !external);
        const here = seen.flatMap(({ external, answer }) => (external || typeof answer === "string" ? [] : [answer]));
        const models = mergeCatalogues(here);
        for (const { id } of listModels({ models, answers: seen, unanswered: [] }, holder, table)) {
          const isHere = models.some((model) => model.id === id) && table.find(id) === undefined;
          expect(isHere || targetsOf(id, holder, table).length > 0).toBe(true);
          if (!isHere) expect(table.find(id)).toBeDefined();
        }
      },
    ),
    { numRuns: 300 },
  );
});

const marked = (version: number): MachineRecord => recordOf("cloud", { version, external: true });

/** The marked machines, after the store held one list of records after the other. */
async function marks(...lists: readonly (readonly MachineRecord[])[]): Promise<readonly string[]> {
  let kept: readonly MachineRecord[] = [];
  const records = new MachineRecords({
    machines: {
      site: async () => ({ id: "s".repeat(22) }),
      list: async () => kept,
      find: async (name) => kept.find((each) => each.name === name),
      findByKey: async () => undefined,
    },
    timing: timingAt(1),
    clock: new TurnableClock(),
    log: { info: () => undefined, warn: () => undefined },
  });
  for (const list of lists) {
    kept = list;
    await records.load();
  }
  return [...records.external];
}

test("the mark of an external machine is set and taken off by its record", async () => {
  expect(await marks([marked(1), recordOf("attic")])).toEqual(["cloud"]);
  expect(await marks([marked(1)], [recordOf("cloud", { version: 2 })])).toEqual([]);
});

test.each([
  ["the store was emptied", [[marked(1)], []]],
  ["the store fell back to an older copy of itself", [[marked(2)], [recordOf("cloud")]]],
  ["the machine was renamed and may still be heard under its old name", [[marked(1)], [{ ...marked(2), name: "far" }]]],
])("the mark of an external machine stays when %s", async (_, lists) => {
  expect(await marks(...lists)).toContain("cloud");
});

test("the mark of an external machine goes with the record of a revoked machine, whose name is then free", async () => {
  expect(await marks([{ ...marked(2), revokedAt: 1 }], [])).toEqual([]);
});
