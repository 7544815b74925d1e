import { type Broker, assertGrants } from "#shared/broker/broker.ts";
import { sleep, type Clock } from "#shared/process/clock.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { control } from "#shared/protocol/job.ts";
import { newEpoch } from "#shared/protocol/identifiers.ts";
import { frameVersion } from "#shared/protocol/frame.ts";
import { decodeJson, encodeJson } from "#shared/protocol/frame-payload.ts";
import { presence, problemCharactersMax, type Presence } from "#shared/protocol/presence.ts";
import { machineSubject, presenceSubject } from "#shared/protocol/subjects.ts";
import type { Timing } from "#shared/protocol/timing.ts";

interface ClaimOptions {
  readonly broker: Broker;
  readonly machine: string;
  /** True if no other agent can be on this broker, so that the claim need not wait for answers. */
  readonly alone: boolean;
  readonly timing: Timing;
  readonly clock: Clock;
}

interface MachineClaim {
  readonly epoch: string;
  /**
   * Calls `newer` when an agent with a newer epoch takes the name, or a gateway fences this one: this agent must stop.
   * Calls `older` when an older agent appears: this agent must announce itself at once.
   */
  watch(heard: { readonly newer: (failure: StartFailure) => void; readonly older: () => void }): {
    /** To be called with the epoch of a gateway's fence, which comes among the controls of jobs. */
    fenced(epoch: string): void;
    end(): void;
  };
}

/**
 * Claims the name of a machine for this boot, with an epoch newer than any other agent's of that name. An agent that
 * has the name answers at once, and so does a gateway that remembers one. The latest boot therefore looks newest even
 * after its clock was set back.
 */
export async function claimMachine({ broker, machine, alone, timing, clock }: ClaimOptions): Promise<MachineClaim> {
  let epoch = newEpoch(clock.wall());
  const heard: string[] = [];
  const hear = (other: string | undefined): void => {
    if (other !== undefined && other !== epoch) heard.push(other);
  };
  const listening = [
    broker.subscribe(presenceSubject(machine), ({ data }) => hear(epochTold(data))),
    broker.subscribe(machineSubject({ machine, epoch }, "control"), ({ data }) => hear(fencedBy(data))),
  ];
  // The agent has not looked for runtimes yet: it is present and offers nothing.
  const nothing = { runtime: null, slots: 0, running: 0, queued: 0, queueMax: 0, catalogueDigest: "" };
  const self: Presence = { machine, epoch, state: "waiting", ...nothing, wire: frameVersion, scale: timing.scale };
  broker.publish(presenceSubject(machine), encodeJson(self));
  try {
    await broker.flush();
    assertGrants(broker);
  } catch (error) {
    // Gateways that hear this machine report to operators why it is missing.
    const goodbye: Presence = { ...self, state: "gone", problem: broker.trouble?.slice(0, problemCharactersMax) };
    broker.publish(presenceSubject(machine), encodeJson(goodbye));
    throw error;
  }
  if (!alone) await sleep(clock, timing.claimWaitMs);
  for (const each of listening) each.end();
  if (heard.some((other) => other > epoch)) epoch = newEpoch(clock.wall(), heard);
  return {
    epoch,
    watch({ newer, older }) {
      const judge = (other: string | undefined): void => {
        if (other === undefined || other === epoch) return;
        if (other > epoch) newer(superseded(machine));
        else older();
      };
      const watching = broker.subscribe(presenceSubject(machine), ({ data }) => judge(epochTold(data)));
      return { fenced: judge, end: () => watching.end() };
    },
  };
}

/** Returns the epoch of a presence. A goodbye claims nothing. */
function epochTold(data: Uint8Array): string | undefined {
  const decoded = decodeJson(presence, data);
  return decoded === undefined || decoded.state === "gone" ? undefined : decoded.epoch;
}

function fencedBy(data: Uint8Array): string | undefined {
  const decoded = decodeJson(control, data);
  return decoded?.kind === "fence" ? decoded.epoch : undefined;
}

function superseded(machine: string): StartFailure {
  const message = `Another agent has started as '${machine}', and the one that started last counts: give each machine a name of its own (TRUNKLINE_MACHINE), or stop the other agent.`;
  return new StartFailure(exitCodes.config, message);
}
