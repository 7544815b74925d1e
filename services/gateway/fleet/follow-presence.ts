import type { Broker } from "#shared/broker/broker.ts";
import { insistOnGrants } from "#shared/broker/insist-on-nats.ts";
import { sleep, type Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { Seldom } from "#shared/process/seldom.ts";
import type { Control } from "#shared/protocol/control.ts";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import { machineSubject, presencePattern, presenceSubject, rollcallSubject } from "#shared/protocol/subjects.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { JobRoutes } from "../dispatch/job-routes.ts";
import type { Catalogues } from "./catalogues.ts";
import type { FloodGuard } from "./flood-guard.ts";
import type { LeftOut } from "./left-out.ts";
import { PresenceReader } from "./presence-reader.ts";
import type { Roster } from "./roster.ts";
import type { SecondConnections } from "./second-connections.ts";

interface FollowOptions {
  readonly broker: Broker;
  readonly roster: Roster;
  readonly leftOut: LeftOut;
  readonly catalogues: Catalogues;
  readonly routes: Pick<JobRoutes, "loadTold">;
  readonly floodGuard: FloodGuard;
  readonly seconds?: Pick<SecondConnections, "heard"> | undefined;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Feeds the roster with the presences of machines. It calls the roll at the start and whenever the connection is back.
 * A gateway thus knows its fleet in a fraction of a second. The promise resolves when it does so.
 */
export async function followPresence(options: FollowOptions): Promise<void> {
  const { broker, roster, leftOut, catalogues, routes, floodGuard, seconds, timing, clock, log } = options;
  const presences = new PresenceReader();
  const seldom = new Seldom(clock);

  const subjectBegin = presenceSubject("").length;
  broker.subscribe(presencePattern, (message) => {
    if (!floodGuard.admits("presence", message.subject.slice(subjectBegin))) return;
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
    const { machine, problem } = told;
    if (problem !== undefined && seldom.isDue(`problem of ${machine}`)) {
      log.warn({ machine, problem }, "a machine takes no work");
    }
    if (roster.announced(told, clock.now()) === "taken") {
      catalogues.follow(told);
      routes.loadTold(told.machine);
      seconds?.heard(told);
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

  // Fences the older agent each time that it sends a presence: an agent that claims its name has little time to learn
  // of the newer one.
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
  await broker.flush();
  insistOnGrants(broker);
  await sleep(clock, timing.rollcallSettleMs);
  // A machine that does not answer must not delay the start of a gateway.
  await Promise.race([catalogues.settled(), sleep(clock, timing.acceptWaitMs)]);
}
