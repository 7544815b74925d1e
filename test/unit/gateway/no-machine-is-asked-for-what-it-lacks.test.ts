import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { Capabilities } from "#shared/protocol/model.ts";
import {
  chooseMachine,
  type Candidate,
  type MachineChoice,
  type Needs,
} from "../../../services/gateway/routing/choose-machine.ts";
import { findModel } from "../../../services/gateway/fleet/catalogues.ts";
import { modelOf, nothing, presenceOf } from "./machines-of-a-fleet.ts";

const plain: Needs = { capability: "completion", tools: false, imageParam: undefined };

function choose(candidates: readonly Candidate[], options: { needs?: Needs; random?: () => number } = {}) {
  const { needs = plain, random = () => 0.5 } = options;
  return chooseMachine({ candidates, needs, random });
}
const machines = (choice: MachineChoice): string[] =>
  choice.outcome === "machines" ? choice.ranked.map(({ machine }) => machine) : [choice.outcome];
const offering = (machine: string, can: Partial<Capabilities>, asked = "llama3"): Candidate => ({
  status: "present",
  presence: presenceOf(machine),
  model: findModel([modelOf("other"), modelOf("llama3", { capabilities: { ...nothing, ...can } })], asked),
});
const chat = { completion: true };

test("the choice of a machine is always one that is ready, offers the model and can do all that the request needs, if there is any", () => {
  const capabilities = fc.record({
    completion: fc.boolean(),
    vision: fc.boolean(),
    embedding: fc.boolean(),
    tools: fc.boolean(),
    thinking: fc.boolean(),
  });
  const fleet = fc.array(
    fc.record({
      id: fc.constantFrom("llama3", "llama3", "mistral"),
      can: capabilities,
      state: fc.constantFrom(
        "ready" as const,
        "ready" as const,
        "waiting" as const,
        "draining" as const,
        "gone" as const,
      ),
      slots: fc.nat(4),
      running: fc.nat(4),
      queued: fc.nat(4),
    }),
    { maxLength: 8 },
  );
  const needs = fc.record({
    capability: fc.constantFrom("completion" as const, "embedding" as const),
    tools: fc.boolean(),
    imageParam: fc.constantFrom(undefined, "messages[0].content[0]"),
  });
  fc.assert(
    fc.property(fleet, needs, fc.array(fc.double({ min: 0, max: 1, noNaN: true })), (given, wanted, draws) => {
      const candidates = given.map(({ id, can, ...load }, place) => ({
        status: "present" as const,
        presence: presenceOf(`gpu-${place}`, load),
        model: id === "llama3" ? modelOf(id, { capabilities: can }) : undefined,
      }));
      const offers = given.flatMap(({ id, can, state }, place) =>
        id === "llama3" && state === "ready" ? [{ machine: `gpu-${place}`, can }] : [],
      );
      const able = offers.filter(
        ({ can }) =>
          can[wanted.capability] && (can.tools || !wanted.tools) && (can.vision || wanted.imageParam === undefined),
      );
      const choice = choose(candidates, { needs: wanted, random: () => draws.pop() ?? 0 });
      if (able.length > 0) expect(machines(choice).toSorted()).toEqual(able.map(({ machine }) => machine).toSorted());
      else expect(choice.outcome).toBe(offers.length > 0 ? "refused" : "not-offered");
    }),
    { numRuns: 500 },
  );
});

test("the choice of a machine names the boot and the model as that machine has it, also when it was asked for with :latest", () => {
  const candidate = offering("gpu-1", chat, "llama3:latest");
  const { epoch } = candidate.presence;
  expect(choose([candidate])).toMatchObject({
    outcome: "machines",
    ranked: [{ machine: "gpu-1", epoch, model: { id: "llama3" } }],
  });
  expect(choose([offering("gpu-1", chat, "llama3:8b")]).outcome).toBe("not-offered");
});

test.each<[string, Partial<Capabilities>, Needs, { code: string; param: string }]>([
  ["tools", chat, { ...plain, tools: true }, { code: "model_does_not_support_tools", param: "tools" }],
  [
    "images",
    chat,
    { ...plain, imageParam: "messages[1].content[0]" },
    { code: "unsupported_value", param: "messages[1].content[0]" },
  ],
  ["chat at all", { embedding: true }, plain, { code: "unsupported_value", param: "model" }],
])("the choice of a machine says what the model lacks: %s", (_, can, needs, fault) => {
  expect(choose([offering("gpu-1", can)], { needs })).toMatchObject({ outcome: "refused", fault });
});
