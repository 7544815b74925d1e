import { z } from "zod";
import type { Broker } from "#shared/broker/broker.ts";
import { connectNats } from "#shared/broker/nats-broker.ts";
import type { NatsSecurity } from "#shared/broker/nats-security.ts";
import type { Clock, Timer } from "#shared/process/clock.ts";
import { type Lifecycle, StartFailure } from "#shared/process/lifecycle.ts";
import { LogThrottle, type Log } from "#shared/process/log.ts";
import { decodeJson } from "#shared/protocol/frame-payload.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import { rollcallSubject } from "#shared/protocol/subjects.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { MachineRecords } from "./machine-records.ts";
import type { Roster } from "./roster.ts";

/**
 * The subject on which NATS publishes an event for each client that connects. Only users of its system account get it.
 */
const connectEvents = "$SYS.ACCOUNT.*.CONNECT";
const connectEvent = z.object({
  server: z.object({ id: z.string() }),
  client: z.object({
    id: z.int(),
    user: z.string().optional(),
    host: z.string().optional(),
    name: z.string().optional(),
  }),
});

/** A client of NATS that connected as the user of a machine. */
interface OpenedConnection {
  /** The user's name, or in operator mode the public key. */
  readonly user: string;
  readonly connection: string;
  readonly address: string | undefined;
  readonly client: string | undefined;
}

interface NatsSettings {
  readonly natsUrl?: string | undefined;
  readonly natsSystemUrl?: string | undefined;
  readonly natsSystemCreds?: string | undefined;
  readonly natsSecurity?: NatsSecurity | undefined;
}

/** The most connections of one machine that are judged between two of its presences. */
const undecidedMax = 10;

interface Dependencies {
  readonly broker: Broker;
  readonly roster: Roster;
  readonly records: Pick<MachineRecords, "getByKey">;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Reports a second connection with the NATS user or the key of a present machine: it can read the machine's jobs without
 * sending anything. Each agent names its own connection in its presence, and every other one is the second. Connections
 * of tunnels have keys that their gateways made, and no machine's.
 */
export class SecondConnections {
  readonly #parts: Dependencies;
  readonly #undecided = new Map<string, (OpenedConnection & { readonly openedAtMs: number })[]>();
  readonly #throttle: LogThrottle;
  #rollcall: Timer | undefined;

  constructor(parts: Dependencies) {
    this.#parts = parts;
    this.#throttle = new LogThrottle(parts.clock);
  }

  /**
   * Judges a new connection. Users are named after their machines, or have the key of one; connections of other users,
   * such as gateways, are not judged.
   */
  opened(opened: OpenedConnection): void {
    const { broker, roster, records, timing, clock } = this.#parts;
    const machine = records.getByKey(opened.user)?.name ?? opened.user;
    const seen = roster.find(machine, clock.now());
    if (seen === undefined || seen.status === "offline" || seen.presence.connection === opened.connection) return;
    const undecided = this.#undecided.get(machine) ?? [];
    if (undecided.length >= undecidedMax) return;
    this.#undecided.set(machine, [...undecided, { ...opened, openedAtMs: clock.now() }]);
    // Most agents that reconnect have named their connection by then; the roll call asks the others.
    this.#rollcall ??= clock.after(timing.rollcallSettleMs, () => {
      this.#rollcall = undefined;
      if (this.#undecided.size > 0) broker.publish(rollcallSubject, new Uint8Array());
    });
  }

  /**
   * Reports every undecided connection that the agent did not name as its own. A presence from before an agent's own
   * reconnect may come after it, so a new connection is judged by a later one. An agent of an older version names none,
   * and its connections are not judged.
   */
  heard({ machine, connection }: Presence): void {
    const { timing, clock } = this.#parts;
    const undecided = this.#undecided.get(machine);
    if (undecided === undefined) return;
    const others = undecided.filter((opened) => connection !== undefined && opened.connection !== connection);
    const settledAtMs = clock.now() - timing.rollcallSettleMs;
    const later = others.filter(({ openedAtMs }) => openedAtMs > settledAtMs);
    if (later.length > 0) this.#undecided.set(machine, later);
    else this.#undecided.delete(machine);
    for (const opened of others) if (!later.includes(opened)) this.#report(machine, opened);
  }

  #report(machine: string, { user, connection, address, client }: OpenedConnection): void {
    if (!this.#throttle.isDue(`${machine} ${address}`)) return;
    this.#parts.log.error(
      { machine, connection, address, client },
      user === machine
        ? "a second connection is open under the NATS user of this machine and can read its jobs: change that user's password, unless an operator opened it"
        : `a second connection is open with the key of this machine and can read its jobs: revoke the machine (trunkline machines revoke ${machine}), and pair it anew`,
    );
  }

  stop(): void {
    this.#rollcall?.cancel();
  }
}

/**
 * Watches connections as a user of the system account: the one in TRUNKLINE_NATS_SYSTEM_URL, or in operator mode that of
 * TRUNKLINE_NATS_SYSTEM_CREDS. Without these settings, logs that second connections are not detected.
 */
export async function watchSecondConnections(
  parts: Dependencies & { readonly config: NatsSettings; readonly lifecycle: Lifecycle },
): Promise<SecondConnections | undefined> {
  const { config, lifecycle, clock, log } = parts;
  const { natsUrl, natsSystemUrl, natsSystemCreds: credentialsFile, natsSecurity: security } = config;
  if (natsUrl === undefined) return undefined;
  if (natsSystemUrl === undefined && credentialsFile === undefined) {
    log.info(
      "a second connection under a machine's NATS user is not detected: neither TRUNKLINE_NATS_SYSTEM_URL nor TRUNKLINE_NATS_SYSTEM_CREDS is set",
    );
    return undefined;
  }
  const url = natsSystemUrl ?? natsUrl;
  const seconds = new SecondConnections(parts);
  const name = "trunkline gateway, connections";
  try {
    const system = await connectNats({ url, credentialsFile, security, name, clock, log });
    lifecycle.onStop("second connections", async () => {
      seconds.stop();
      await system.close();
    });
    system.subscribe(connectEvents, ({ data }) => {
      const event = decodeJson(connectEvent, data);
      if (event === undefined) return;
      const { id, user, host: address, name: client } = event.client;
      if (user !== undefined) seconds.opened({ user, connection: `${event.server.id}.${id}`, address, client });
    });
    await system.flush();
  } catch (error) {
    if (!(error instanceof StartFailure)) throw error;
    const setting = natsSystemUrl === undefined ? "TRUNKLINE_NATS_SYSTEM_CREDS" : "TRUNKLINE_NATS_SYSTEM_URL";
    throw new StartFailure(error.exitCode, `${setting}: ${error.message}`, { cause: error });
  }
  return seconds;
}
