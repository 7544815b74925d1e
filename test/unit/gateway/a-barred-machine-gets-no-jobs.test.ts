import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { chooseMachine, type Candidate } from "../../../services/gateway/routing/choose-machine.ts";
import { explainChoice } from "../../../services/gateway/routing/explain-routing.ts";
import type { Barred } from "../../../services/gateway/fleet/machine-records.ts";
import { MachineRanking } from "../../../services/gateway/routing/rank-machines.ts";
import { JobPlacements } from "../../../services/gateway/routing/job-placements.ts";
import { Breakers } from "../../../services/gateway/routing/breakers.ts";
import { Catalogues } from "../../../services/gateway/fleet/catalogues.ts";
import type { KnownModels } from "#shared/store/known-models.ts";
import { Roster } from "../../../services/gateway/fleet/roster.ts";
import { candidate } from "./candidates-of-a-model.ts";
import { gatewayOnBroker } from "./gateway-on-a-broker.ts";
import { modelOf, presenceOf } from "./machines-of-a-fleet.ts";

const takenAway = new Fault("agent_offline", { message: "The machine was taken away." });
const needs = { capability: "completion", tools: false, imageParam: undefined } as const;

test("a revoked machine loses its open jobs at once and is told to stop, and another machine's jobs go on", async () => {
  const { machine, open, run, settle } = gatewayOnBroker();
  machine.listen();
  const { id, told } = await run();
  machine.say(id, "accept", { state: "prefill" });
  await settle();
  open.cancelOn("gpu-2", takenAway);
  await settle();
  expect(told).toEqual(["accepted"]);
  open.cancelOn("gpu-1", takenAway);
  await settle();
  expect(told).toEqual(["accepted", "fault agent_offline"]);
  expect(machine.takeControls()).toMatchObject([{ kind: "cancel", job: id }]);
});

test("a revoked machine is given no job that was ranked for it before", async () => {
  const barred = new Map<string, Barred>();
  const { machine, run } = gatewayOnBroker({ barred });
  machine.listen();
  barred.set("gpu-1", "revoked");
  expect((await run()).told).toEqual(["not-taken agent_offline"]);
  expect(machine.jobs).toEqual([]);
});

test("a revoked machine is forgotten and not taken into the roster again", () => {
  const { roster, clock } = gatewayOnBroker({ barred: new Map([["gpu-1", "revoked"]]) });
  expect(roster.announced(presenceOf("gpu-1"), clock.now())).toBe("revoked");
  expect(roster.find("gpu-1", clock.now())).toBeUndefined();
  roster.forget("gpu-2");
  expect(roster.all(clock.now())).toEqual([]);
});

test("a cordoned machine is left out with the reason, and named when it alone has the model", async () => {
  const barred = new Map<string, Barred>([["attic", "cordoned"]]);
  const { clock, timing, log } = gatewayOnBroker();
  const roster = new Roster(timing, (name) => barred.get(name));
  const knownModels: KnownModels = { remember: async () => undefined, knows: async () => "known" };
  const catalogues = new Catalogues({ ask: async () => [modelOf("llama3")], knownModels, clock, log });
  roster.announced(presenceOf("attic"), clock.now());
  catalogues.follow(presenceOf("attic"));
  await catalogues.settled();
  const placements = new JobPlacements({
    roster,
    catalogues,
    breakers: new Breakers(timing),
    clock,
    random: Math.random,
  });
  const ranking = new MachineRanking({ roster, catalogues, knownModels, placements, waitMs: 0, timing, clock });
  const wish = { kind: "chat", modelId: "llama3", needs, machines: undefined } as const;
  expect(placements.canPlace(wish)).toBe(false);
  expect(explainChoice(placements.explain(wish))).toMatchObject([{ machine: "attic", reason: "cordoned" }]);
  expect(await ranking.absence({ modelId: "llama3", machines: undefined })).toMatchObject({
    code: "agent_offline",
    message: expect.stringContaining("cordoned"),
  });
  barred.clear();
  expect(placements.canPlace(wish)).toBe(true);
});

test("a cordoned machine keeps its place in the roster, so that its running jobs are followed to their ends", () => {
  const { roster, clock } = gatewayOnBroker({ barred: new Map([["gpu-1", "cordoned"]]) });
  expect(roster.find("gpu-1", clock.now())).toMatchObject({ status: "present", isCordoned: true });
  expect(roster.find("gpu-2", clock.now())).toMatchObject({ status: "present", isCordoned: false });
});

test("a cordoned machine comes after what makes it unable to take any job", () => {
  const reasonOf = (about: Partial<Candidate>) =>
    explainChoice(
      chooseMachine({
        needs,
        candidates: [{ ...candidate("attic"), isCordoned: true, ...about }],
        random: () => 0,
      }),
    )[0]?.reason;
  expect(reasonOf({})).toBe("cordoned");
  expect(reasonOf({ status: "offline" })).toBe("offline");
});
