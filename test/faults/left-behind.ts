import { readdir } from "node:fs/promises";
import { Redis } from "ioredis";
import { z } from "zod";
import { connectNats } from "#shared/broker/nats-broker.ts";
import type { Broker } from "#shared/broker/broker.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import { decodeJson } from "#shared/protocol/frame-payload.ts";
import { presence, type Presence } from "#shared/protocol/presence.ts";
import { presencePattern } from "#shared/protocol/subjects.ts";
import type { Fleet } from "../harness/start-fleet.ts";
import type { TrunklineProcess } from "../harness/trunkline-process.ts";
import { until } from "../harness/until.ts";

const subscriptions = z.looseObject({ num_subscriptions: z.number() });

/** A connection that a process keeps open for its own sake comes and goes: a timer's look at Redis, a reconnect. */
const filesToleratedMax = 2;

/**
 * What a fleet holds while nobody asks anything of it, and whether it is back to that: jobs that machines run or keep
 * waiting, seats in Redis, subscriptions at NATS, open files of each process.
 */
export class LeftBehind implements AsyncDisposable {
  readonly #fleet: Fleet;
  readonly #broker: Broker;
  readonly #redis: Redis;
  readonly #presences = new Map<string, Presence>();
  /** By process: a gateway that was started anew has files of its own, and is looked at from then on. */
  readonly #files = new Map<number | undefined, number>();
  #subscriptions = 0;

  private constructor(fleet: Fleet, broker: Broker) {
    this.#fleet = fleet;
    this.#broker = broker;
    this.#redis = new Redis(fleet.redis.url);
    this.#redis.on("error", () => undefined);
    broker.subscribe(presencePattern, ({ data }) => {
      const told = decodeJson(presence, data);
      if (told !== undefined) this.#presences.set(told.machine, told);
    });
  }

  /** Looks at an idle fleet, which is what it has to come back to. */
  static async of(fleet: Fleet): Promise<LeftBehind> {
    const log = createLog({ level: "silent", name: "left-behind" });
    const broker = await connectNats({ ...fleet.natsConnection, name: "left-behind", clock, log });
    const left = new LeftBehind(fleet, broker);
    await left.takeBaseline();
    return left;
  }

  /** The last that was heard of a machine. */
  presenceOf(machine: string): Presence | undefined {
    return this.#presences.get(machine);
  }

  forgetPresences(): void {
    this.#presences.clear();
  }

  async takeBaseline(): Promise<void> {
    this.#subscriptions = (await this.#subscribed()) ?? 0;
    for (const process of this.#processes()) this.#files.set(process.processId, await openFiles(process));
  }

  /** Resolves when nothing is left behind, or rejects with all that is. */
  async untilNothing(withinMs: number): Promise<void> {
    this.forgetPresences();
    let left: readonly string[] = [];
    const nothing = async (): Promise<boolean> => (left = await this.#look()).length === 0;
    await until(nothing, { what: "nothing to be left behind", timeoutMs: withinMs, intervalMs: 25 }).catch(
      (error: unknown) => {
        throw new Error(left.length === 0 ? String(error) : `left behind after ${withinMs} ms: ${left.join("; ")}`);
      },
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#redis.disconnect();
    await this.#broker.close();
  }

  async #look(): Promise<string[]> {
    const alive = this.#fleet.machines.filter((machine) => !this.#fleet.agent(machine).ended);
    const files = this.#processes().map((process) => this.#filesOf(process));
    const held = await Promise.all([this.#seats(), this.#atNats(), ...files]);
    return [...alive.flatMap((machine) => this.#jobsOf(machine)), ...held.flat()];
  }

  #jobsOf(machine: string): string[] {
    const told = this.#presences.get(machine);
    if (told === undefined) return [`${machine} has not been heard`];
    const { running, queued, strays = 0 } = told;
    return running + queued + strays === 0 ? [] : [`${machine} runs ${running}, keeps ${queued} and strays ${strays}`];
  }

  async #seats(): Promise<string[]> {
    const names = await this.#redis.keys("*seats:*");
    const taken = await Promise.all(names.map((name) => this.#redis.zcard(name)));
    const count = taken.reduce((sum, seats) => sum + seats, 0);
    return count === 0 ? [] : [`${count} seats in Redis`];
  }

  async #atNats(): Promise<string[]> {
    const now = await this.#subscribed();
    return now === undefined || now <= this.#subscriptions
      ? []
      : [`${now} subscriptions at NATS, which were ${this.#subscriptions}`];
  }

  async #subscribed(): Promise<number | undefined> {
    const { natsMonitorUrl } = this.#fleet;
    if (natsMonitorUrl === undefined) return undefined;
    const response = await fetch(`${natsMonitorUrl}/subsz`, { headers: { connection: "close" } });
    return subscriptions.parse(await response.json()).num_subscriptions;
  }

  async #filesOf(process: TrunklineProcess): Promise<string[]> {
    const before = this.#files.get(process.processId);
    const now = await openFiles(process);
    if (before === undefined || now <= before + filesToleratedMax) return [];
    return [`${process.title} has ${now} files open, which were ${before}`];
  }

  #processes(): TrunklineProcess[] {
    const { gateways, machines } = this.#fleet;
    return [...gateways, ...machines.map((machine) => this.#fleet.agent(machine))].filter(({ ended }) => !ended);
  }
}

/** Of no process where the system does not tell. */
async function openFiles({ processId }: TrunklineProcess): Promise<number> {
  return (await readdir(`/proc/${processId}/fd`).catch(() => [])).length;
}
