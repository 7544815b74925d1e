import type { Broker } from "#shared/broker/broker.ts";
import { sleep, type Clock } from "#shared/process/clock.ts";
import { exitCodes, StartFailure } from "#shared/process/start-failure.ts";
import { control } from "#shared/protocol/control.ts";
import { newEpoch } from "#shared/protocol/epoch.ts";
import { decodeJson, encodeJson } from "#shared/protocol/frame-payload.ts";
import { presence, type Presence } from "#shared/protocol/presence.ts";
import { machineSubject, presenceSubject } from "#shared/protocol/subjects.ts";
import type { Timing } from "#shared/protocol/timing.ts";

interface ClaimOptions {
  readonly broker: Broker;
  readonly machine: string;
  /** No other agent can be on this broker, so nobody has to be waited for. */
  readonly alone: boolean;
  readonly timing: Timing;
  readonly clock: Clock;
}

/** The name of a machine, as one boot of its agent holds it. */
export interface MachineClaim {
  readonly epoch: string;
  /**
   * Calls back when another agent takes the name, or was told to have it: `newer` is to stop this one, and `older` to
   * be told at once that this one is there.
   */
  watch(heard: { readonly newer: (failure: StartFailure) => void; readonly older: () => void }): { end(): void };
}

/**
 * Claims the name of a machine for this boot, with an epoch that is newer than any other agent's of that name. Whoever has
 * the name answers at once, and so does a gateway that remembers one, so that not even a clock that was set back makes
 * the boot that came last look older.
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
  broker.publish(presenceSubject(machine), encodeJson(justThere({ machine, epoch, scale: timing.scale })));
  await broker.flush();
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
      const watching = [
        broker.subscribe(presenceSubject(machine), ({ data }) => judge(epochTold(data))),
        broker.subscribe(machineSubject({ machine, epoch }, "control"), ({ data }) => judge(fencedBy(data))),
      ];
      return {
        end() {
          for (const each of watching) each.end();
        },
      };
    },
  };
}

/** The boot that speaks in a presence. A goodbye claims nothing. */
function epochTold(data: Uint8Array): string | undefined {
  const told = decodeJson(presence, data);
  return told === undefined || told.state === "gone" ? undefined : told.epoch;
}

function fencedBy(data: Uint8Array): string | undefined {
  const told = decodeJson(control, data);
  return told?.kind === "fence" ? told.epoch : undefined;
}

/** What an agent says before it has looked at anything: that it is there, and offers nothing yet. */
function justThere(self: { machine: string; epoch: string; scale: number }): Presence {
  const nothing = { slots: 0, running: 0, queued: 0, queueMax: 0, catalogueDigest: "", shapes: [] };
  return { ...self, state: "waiting", runtime: null, ...nothing };
}

function superseded(machine: string): StartFailure {
  return new StartFailure(
    exitCodes.config,
    `Another agent has started as '${machine}', and the one that started last counts: give each machine a name of its own (TRUNKLINE_MACHINE), or stop the other agent.`,
  );
}
