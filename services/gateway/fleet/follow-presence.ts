import { LRUCache } from "lru-cache";
import { type Broker, type BrokerMessage, assertGrants } from "#shared/broker/broker.ts";
import { sleep, type Clock } from "#shared/process/clock.ts";
import { LogThrottle, type Log } from "#shared/process/log.ts";
import type { Control } from "#shared/protocol/job.ts";
import { encodeJson, decodeJson } from "#shared/protocol/frame-payload.ts";
import { frameVersion } from "#shared/protocol/frame.ts";
import { type Presence, presence } from "#shared/protocol/presence.ts";
import { machineSubject, presencePattern, presenceSubject, rollcallSubject } from "#shared/protocol/subjects.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { Catalogues } from "./catalogues.ts";
import type { FloodGuard } from "./flood-guard.ts";
import type { LeftOut, Roster } from "./roster.ts";
import type { SecondConnections } from "./second-connections.ts";
import { limits } from "#shared/protocol/limits.ts";

interface FollowPresenceOptions {
  readonly broker: Broker;
  readonly roster: Roster;
  readonly leftOut: LeftOut;
  readonly catalogues: Catalogues;
  readonly placements: { loadReported(presence: Presence): void };
  readonly floodGuard: FloodGuard;
  /** True for a machine that its operator drains. */
  readonly isDrained: (machine: string) => boolean;
  /** Called with each presence of a machine that is about to stop, or is drained by its operator. */
  readonly onDraining: (machine: string) => void;
  readonly seconds?: Pick<SecondConnections, "heard"> | undefined;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Feeds the roster with the presences of machines. It calls the roll at the start and whenever the connection is back.
 * A gateway thus knows its fleet in a fraction of a second. The promise resolves when it does so.
 */
export async function followPresence(options: FollowPresenceOptions): Promise<void> {
  const { broker, roster, leftOut, catalogues, placements, floodGuard, onDraining, seconds, timing, clock, log } =
    options;
  const presences = new PresenceReader();
  const throttle = new LogThrottle(clock);

  const subjectBegin = presenceSubject("").length;
  broker.subscribe(presencePattern, (message) => {
    if (!floodGuard.admits("presence", message.subject.slice(subjectBegin))) return;
    const announced = presences.read(message);
    if (announced === undefined) {
      if (throttle.isDue(message.subject)) {
        log.warn({ subject: message.subject }, "presences that this gateway does not understand are dropped");
      }
      return;
    }
    if (announced.wire !== frameVersion) {
      leftOut.heard(announced, "other-version", clock.now());
      if (throttle.isDue(`version of ${announced.machine}`)) {
        const { machine, wire } = announced;
        log.error({ machine, wire, own: frameVersion }, "a machine speaks another version of the wire and is left out");
      }
      return;
    }
    if (announced.scale !== timing.scale) {
      leftOut.heard(announced, "other-scale", clock.now());
      if (throttle.isDue(`scale of ${announced.machine}`)) {
        log.error(
          { machine: announced.machine, scale: announced.scale },
          "a machine runs at another TRUNKLINE_TIME_SCALE and is left out",
        );
      }
      return;
    }
    const { machine, problem } = announced;
    if (problem !== undefined && throttle.isDue(`problem of ${machine}`)) {
      log.warn({ machine, problem }, "a machine takes no work");
    }
    const outcome = roster.announced(announced, clock.now());
    if (outcome === "revoked") {
      leftOut.heard(announced, "revoked", clock.now());
      if (throttle.isDue(`revoked ${machine}`)) log.warn({ machine }, "a revoked machine is still connected");
      return;
    }
    if (outcome === "taken") {
      catalogues.follow(announced);
      placements.loadReported(announced);
      seconds?.heard(announced);
      if (announced.state === "draining" || options.isDrained(machine)) onDraining(machine);
      return;
    }
    leftOut.heard(announced, "older", clock.now());
    fenceOff(announced);
    if (throttle.isDue(`two of ${announced.machine}`)) {
      log.warn(
        { machine: announced.machine },
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
  assertGrants(broker);
  await sleep(clock, timing.rollcallSettleMs);
  // A machine that does not answer must not delay the start of a gateway.
  await Promise.race([catalogues.settled(), sleep(clock, timing.acceptWaitMs)]);
}

interface Latest {
  readonly bytes: Uint8Array;
  readonly presence: Presence;
}

/** The latest presences of this many machines are kept. Beyond that, all are dropped, and each is parsed anew once. */
const machinesMax = 10_000;
/** The longest presence that is kept. An agent's presence is a tenth of this; a longer one is parsed each time. */
const bytesMax = 4_096;

/**
 * Parses the presences of machines. A machine that is as busy as a second ago sends the same bytes, which are not
 * parsed again. In a large fleet a gateway would do little else. A parsed presence lives for a second, too long for
 * the garbage collector to collect it young.
 */
export class PresenceReader {
  readonly #latest = new LRUCache<string, Latest>({ max: machinesMax });

  /**
   * Returns the presence that a machine sent under its own name, or undefined for anything else. Equal bytes give the
   * same object.
   */
  read({ subject, data }: Pick<BrokerMessage, "subject" | "data">): Presence | undefined {
    const latest = this.#latest.get(subject);
    if (latest !== undefined && Buffer.compare(latest.bytes, data) === 0) return latest.presence;
    if (data.byteLength > limits.presenceBytesMax) return undefined;
    const announced = decodeJson(presence, data);
    if (announced === undefined || subject !== presenceSubject(announced.machine)) return undefined;
    if (announced.state === "gone" || data.byteLength > bytesMax) this.#latest.delete(subject);
    else this.#latest.set(subject, { bytes: new Uint8Array(data), presence: announced });
    return announced;
  }
}
