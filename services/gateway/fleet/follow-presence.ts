import type { Broker } from "#shared/broker/broker.ts";
import { sleep, type Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { Seldom } from "#shared/process/seldom.ts";
import type { Control } from "#shared/protocol/control.ts";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import { machineSubject, presencePattern, rollcallSubject } from "#shared/protocol/subjects.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { JobRoutes } from "../dispatch/job-routes.ts";
import type { Catalogues } from "./catalogues.ts";
import type { LeftOut } from "./left-out.ts";
import { PresenceReader } from "./presence-reader.ts";
import type { Roster } from "./roster.ts";

interface FollowOptions {
  readonly broker: Broker;
  readonly roster: Roster;
  readonly leftOut: LeftOut;
  readonly catalogues: Catalogues;
  readonly routes: Pick<JobRoutes, "loadTold">;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Feeds the roster with what the machines say of themselves, and calls the roll at the start and whenever the
 * connection is back, so that a gateway knows its fleet in a fraction of a second: when this resolves.
 */
export async function followPresence(options: FollowOptions): Promise<void> {
  const { broker, roster, leftOut, catalogues, routes, timing, clock, log } = options;
  const presences = new PresenceReader();
  const seldom = new Seldom(clock);

  broker.subscribe(presencePattern, (message) => {
    const told = presences.read(message);
    if (told === undefined) {
      if (seldom.isDue(message.subject)) {
        log.warn({ subject: message.subject }, "presences that this gateway does not understand are dropped");
      }
      return;
    }
    if (told.scale !== timing.scale) {
      leftOut.heard(told, "other-scale", clock.now());
      if (seldom.isDue(`scale of ${told.machine}`)) {
        log.error(
          { machine: told.machine, scale: told.scale },
          "a machine runs at another TRUNKLINE_TIME_SCALE and is left out",
        );
      }
      return;
    }
    if (roster.announced(told, clock.now()) === "taken") {
      catalogues.follow(told);
      routes.loadTold(told.machine);
      return;
    }
    leftOut.heard(told, "older", clock.now());
    fenceOff(told);
    if (seldom.isDue(`two of ${told.machine}`)) {
      log.warn(
        { machine: told.machine },
        "two agents call themselves this; the one that started last counts (TRUNKLINE_MACHINE)",
      );
    }
  });

  // It is told each time that it speaks: an agent that claims its name has little time to learn who has it.
  const fenceOff = (older: Presence): void => {
    const newer = roster.find(older.machine, clock.now())?.presence.epoch;
    if (newer === undefined || older.state === "gone") return;
    broker.publish(machineSubject(older, "control"), encodeJson({ kind: "fence", epoch: newer } satisfies Control));
  };

  const callTheRoll = (): void => void broker.publish(rollcallSubject, new Uint8Array());
  broker.onChange((connected) => {
    if (!connected) return;
    roster.reconnected(clock.now());
    callTheRoll();
  });
  callTheRoll();
  await sleep(clock, timing.rollcallSettleMs);
  // A machine that does not answer holds no gateway up.
  await Promise.race([catalogues.settled(), sleep(clock, timing.acceptWaitMs)]);
}
