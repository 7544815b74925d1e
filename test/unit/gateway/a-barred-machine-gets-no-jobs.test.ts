import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { chooseMachine, type Candidate } from "../../../services/gateway/routing/choose-machine.ts";
import { explainChoice } from "../../../services/gateway/routing/explain-routing.ts";
import type { Barred } from "../../../services/gateway/fleet/machine-records.ts";
import { candidate } from "./candidates-of-a-model.ts";
import { gatewayOnBroker } from "./gateway-on-a-broker.ts";
import { presenceOf } from "./machines-of-a-fleet.ts";

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
