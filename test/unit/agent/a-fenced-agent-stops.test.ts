import { expect, onTestFinished, test } from "vitest";
import { MemoryBroker } from "#shared/broker/memory-broker.ts";
import { Lifecycle } from "#shared/process/lifecycle.ts";
import { createLog } from "#shared/process/log.ts";
import { decodeJson, encodeJson } from "#shared/protocol/frame-payload.ts";
import { newEpoch } from "#shared/protocol/identifiers.ts";
import { presence, type Presence } from "#shared/protocol/presence.ts";
import { machineSubject, presenceSubject } from "#shared/protocol/subjects.ts";
import { startAgent } from "../../../services/agent/compose.ts";
import { agentConfig } from "../../../services/agent/config.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";
import { until } from "../../harness/until.ts";

const machine = "attic";

/** An agent on a broker in this process, and the presences that it sends. Its clock stands still, so no interval ends. */
async function heardAgent() {
  const [clock, log] = [new TurnableClock(), createLog({ level: "silent", name: "test" })];
  const network = new MemoryBroker({ clock, log });
  const gateway = network.connect();
  const heard: Presence[] = [];
  gateway.subscribe(presenceSubject(machine), ({ data }) => {
    const decoded = decodeJson(presence, data);
    if (decoded !== undefined) heard.push(decoded);
  });
  const lifecycle = new Lifecycle({ clock, log });
  onTestFinished(() => lifecycle.stop(0));
  const config = agentConfig({ TRUNKLINE_MACHINE: machine, TRUNKLINE_RUNTIME: "scripted" });
  const broker = network.connect();
  await startAgent({ config, broker, alone: true, lifecycle, clock, log });
  await until(() => heard.some(({ state }) => state === "ready"), { what: "the agent to be ready" });
  const { epoch = "" } = heard.at(-1) ?? {};
  const fence = (by: string): unknown =>
    gateway.publish(machineSubject({ machine, epoch }, "control"), encodeJson({ kind: "fence", epoch: by }));
  return { lifecycle, heard, epoch, fence };
}

test("an agent that is fenced for an older one announces itself and goes on", async () => {
  const { lifecycle, heard, fence } = await heardAgent();
  let failed = false;
  void lifecycle.failed.then(() => (failed = true));
  const before = heard.length;
  fence(newEpoch(1_000));
  await until(() => heard.length > before, { what: "the agent to announce itself" });
  expect([failed, heard.at(-1)?.state]).toEqual([false, "ready"]);
});
