import { chosenOf } from "./offers.ts";
import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { PromptCounter } from "../../../services/gateway/requests/count-prompts.ts";
import { end } from "./follower-on-a-wire.ts";
import { gatewayOnBroker } from "./gateway-on-a-broker.ts";
import { requestOfATest } from "./request-of-a-test.ts";
import { modelOf, presenceOf } from "./machines-of-a-fleet.ts";

/** A gateway that ranks these machines in this order; those that are named count. */
function counting({ able }: { readonly able: readonly string[] }) {
  const names = ["gpu-1", "gpu-2", "gpu-3"];
  const { machines, open: jobs, clock, timing, settle, pass } = gatewayOnBroker({ names });
  const ranked = names.map((machine) =>
    chosenOf(machine, {
      epoch: presenceOf(machine).epoch,
      model: { ...modelOf("llama3"), ...(able.includes(machine) && { counts: true }) },
    }),
  );
  const counter = new PromptCounter({ jobs, placements: { rankNow: () => ranked }, timing, clock });
  const [one, other, third] = machines.map((machine) => machine.listen());
  if (one === undefined || other === undefined || third === undefined) throw new Error("there are three machines");
  const leaving = new AbortController();
  const asked = (): string[] => machines.filter(({ jobs: got }) => got.length > 0).map(({ name }) => name);
  const start = async () => {
    const count = counter.count(requestOfATest(clock), leaving.signal);
    count.catch(() => undefined);
    await settle();
    return count;
  };
  const usage = (promptTokens: number) => ({ ...end, usage: { promptTokens, completionTokens: 0 } });
  return { one, other, start, asked, usage, settle, pass, timing, leaving };
}

const jobOf = (machine: { readonly jobs: readonly { readonly head: { readonly id: string } }[] }): string =>
  machine.jobs[0]?.head.id ?? "";

test("the tokens of a prompt are counted by the best machine that counts, as a job of its own kind", async () => {
  const { other, start, asked, usage, settle } = counting({ able: ["gpu-2", "gpu-3"] });
  const counted = start();
  await settle();
  expect(asked()).toEqual(["gpu-2"]);
  expect(other.jobs[0]?.head).toMatchObject({ kind: "count", model: "llama3", keyId: "key" });
  other.say(jobOf(other), "end", usage(1_234), 1);
  expect(await counted).toBe(1_234);
});

test("the tokens of a prompt are counted by the next machine when the best one refuses", async () => {
  const { one, other, start, asked, usage, settle } = counting({ able: ["gpu-1", "gpu-2"] });
  const counted = start();
  await settle();
  one.say(jobOf(one), "reject", { reason: "busy", message: "enough" });
  await settle();
  expect(asked()).toEqual(["gpu-1", "gpu-2"]);
  other.say(jobOf(other), "end", usage(7), 1);
  expect(await counted).toBe(7);
});

test("the tokens of a prompt stay unknown when the machine takes longer than countWaitMs", async () => {
  const { one, start, settle, pass, timing } = counting({ able: ["gpu-1"] });
  const counted = start();
  await settle();
  one.say(jobOf(one), "accept", { state: "prefill" });
  for (let passed = 0; passed < timing.countWaitMs; passed += 500) {
    one.beat([jobOf(one), "prefill", 0, 0, 0, 0]);
    await pass(500);
  }
  expect(await counted).toBeUndefined();
  expect(one.takeControls()).toContainEqual(expect.objectContaining({ kind: "cancel" }));
});

test("the tokens of a prompt are not waited for when the client has left", async () => {
  const { one, start, settle, leaving } = counting({ able: ["gpu-1"] });
  const counted = start();
  await settle();
  leaving.abort(new Fault("client_closed", { message: "The client left." }));
  await expect(counted).rejects.toMatchObject({ code: "client_closed" });
  await settle();
  expect(one.takeControls()).toContainEqual(expect.objectContaining({ kind: "cancel" }));
});
