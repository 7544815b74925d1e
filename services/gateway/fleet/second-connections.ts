import { z } from "zod";
import type { Broker } from "#shared/broker/broker.ts";
import { connectNats } from "#shared/broker/nats-broker.ts";
import type { Clock, Timer } from "#shared/process/clock.ts";
import { type Lifecycle, StartFailure } from "#shared/process/lifecycle.ts";
import { LogThrottle, type Log } from "#shared/process/log.ts";
import { decodeJson } from "#shared/protocol/frame-payload.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import { rollcallSubject } from "#shared/protocol/subjects.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { GatewayConfig } from "../config.ts";
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
  readonly connection: string;
  readonly address: string | undefined;
  readonly client: string | undefined;
}

/** The most connections of one machine that are judged between two of its presences. */
const undecidedMax = 10;

interface Parts {
  readonly broker: Broker;
  readonly roster: Roster;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Reports a second connection under the NATS user of a present machine: it can read the machine's jobs without sending
 * anything. Each agent names its own connection in its presence, and every other one is the second.
 */
export class SecondConnections {
  readonly #parts: Parts;
  readonly #undecided = new Map<string, OpenedConnection[]>();
  readonly #throttle: LogThrottle;
  #rollcall: Timer | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#throttle = new LogThrottle(parts.clock);
  }

  /**
   * Judges a new connection. Users are named after their machines; connections of other users, such as gateways, are
   * not judged.
   */
  opened(machine: string, opened: OpenedConnection): void {
    const { broker, roster, timing, clock } = this.#parts;
    const seen = roster.find(machine, clock.now());
    if (seen === undefined || seen.status === "offline" || seen.presence.connection === opened.connection) return;
    const undecided = this.#undecided.get(machine) ?? [];
    if (undecided.length >= undecidedMax) return;
    this.#undecided.set(machine, [...undecided, opened]);
    // Most agents that reconnect have named their connection by then; the roll call asks the others.
    this.#rollcall ??= clock.after(timing.rollcallSettleMs, () => {
      this.#rollcall = undefined;
      if (this.#undecided.size > 0) broker.publish(rollcallSubject, new Uint8Array());
    });
  }

  /**
   * Reports every undecided connection that the agent did not name as its own. An agent of an older version names none,
   * and its connections are not judged.
   */
  heard({ machine, connection }: Presence): void {
    const undecided = this.#undecided.get(machine);
    if (undecided === undefined) return;
    this.#undecided.delete(machine);
    if (connection === undefined) return;
    for (const opened of undecided) if (opened.connection !== connection) this.#report(machine, opened);
  }

  #report(machine: string, opened: OpenedConnection): void {
    if (!this.#throttle.isDue(`${machine} ${opened.address}`)) return;
    this.#parts.log.error(
      { machine, ...opened },
      "a second connection is open under the NATS user of this machine and can read its jobs: change that user's password, unless an operator opened it",
    );
  }

  stop(): void {
    this.#rollcall?.cancel();
  }
}

/**
 * Watches connections as the system-account user of TRUNKLINE_NATS_SYSTEM_URL. Without this
 * setting, logs that second connections are not detected.
 */
export async function watchSecondConnections(
  parts: Parts & { readonly config: GatewayConfig; readonly lifecycle: Lifecycle },
): Promise<SecondConnections | undefined> {
  const { config, lifecycle, clock, log } = parts;
  const { natsUrl, natsSystemUrl: url, natsSecurity: security } = config;
  if (natsUrl === undefined) return undefined;
  if (url === undefined) {
    log.info("a second connection under a machine's NATS user is not detected: TRUNKLINE_NATS_SYSTEM_URL is not set");
    return undefined;
  }
  const seconds = new SecondConnections(parts);
  try {
    const system = await connectNats({ url, security, name: "trunkline gateway, connections", clock, log });
    lifecycle.onStop("second connections", async () => {
      seconds.stop();
      await system.close();
    });
    system.subscribe(connectEvents, ({ data }) => {
      const event = decodeJson(connectEvent, data);
      if (event === undefined) return;
      const { id, user, host: address, name: client } = event.client;
      if (user !== undefined) seconds.opened(user, { connection: `${event.server.id}.${id}`, address, client });
    });
    await system.flush();
  } catch (error) {
    if (!(error instanceof StartFailure)) throw error;
    throw new StartFailure(error.exitCode, `TRUNKLINE_NATS_SYSTEM_URL: ${error.message}`, { cause: error });
  }
  return seconds;
}
