import type { Broker } from "#shared/broker/broker.ts";
import { connectNats } from "#shared/broker/nats-broker.ts";
import { systemClock as clock, type Timer } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import { newEpoch } from "#shared/protocol/identifiers.ts";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import { encodeFrame, frameVersion, type FrameKind } from "#shared/protocol/frame.ts";
import { decodeJobHead, headHeader, type JobHead } from "#shared/protocol/job.ts";
import { machineSubject, presenceSubject, rollcallSubject } from "#shared/protocol/subjects.ts";
import { jsonPayload } from "../harness/answer-payload.ts";
import { handMadeEnd } from "../harness/hand-made-agent.ts";

/** A job as the machine got it. */
export interface MeanJob {
  readonly head: JobHead;
  readonly reply: string;
  readonly body: Uint8Array;
}

export type Said = readonly [kind: FrameKind, payload: unknown, sequence?: number];

const announceIntervalMs = 500;

/**
 * A machine on a real NATS that lies: it tells of its models and answers jobs as a test wants, and says things nobody
 * asked for as often as it is told to. It announces itself like any other machine, so that a slow test does not lose it.
 */
export class MeanMachine implements AsyncDisposable {
  /** With `hears`: the subject of every message on the broker since it came, its own among them. */
  readonly heard: string[] = [];
  /** The jobs that it was given, but for those that ask for its models. */
  readonly jobs: MeanJob[] = [];
  /** How often it was asked for its models. */
  asked = 0;
  readonly machine: string;
  readonly epoch = newEpoch(Date.now());
  readonly #broker: Broker;
  readonly #presence: () => object;
  readonly #parts = new AsyncDisposableStack();

  private constructor(machine: string, broker: Broker, presence: () => object) {
    this.machine = machine;
    this.#presence = presence;
    this.#broker = broker;
    this.#parts.defer(() => broker.close());
  }

  static async start(options: {
    readonly natsUrl: string;
    readonly machine: string;
    /** What it answers when it is asked for its models. */
    readonly catalogue: () => readonly Said[];
    /** Fields of its presence that are not as an agent of this build has them. */
    readonly presence?: () => object;
    /** False for a machine that announces itself only when it is told to. */
    readonly announces?: boolean;
    /** True for a machine that listens to all subjects, on a connection of its own. */
    readonly hears?: boolean;
    readonly answer?: (job: MeanJob) => readonly Said[];
    /** Whether it refuses a job as busy once it has read it. */
    readonly refuses?: () => boolean;
  }): Promise<MeanMachine> {
    const { natsUrl: url, machine: name, catalogue, answer = () => [], refuses = () => false } = options;
    const { presence = () => ({}), announces = true, hears = false } = options;
    const connect = (): Promise<Broker> => connectNats({ url, name, clock, log: createLog({ level: "silent", name }) });
    const broker = await connect();
    const machine = new MeanMachine(name, broker, presence);
    const { epoch } = machine;
    if (hears) {
      const tap = await connect();
      machine.#parts.defer(() => tap.close());
      tap.subscribe(">", ({ subject }) => void machine.heard.push(subject));
      await tap.flush();
    }
    broker.subscribe(machineSubject({ machine: name, epoch }, "job"), (message) => {
      const decoded = decodeJobHead(message.headers?.[headHeader]);
      const { reply } = message;
      if (decoded.outcome !== "head" || reply === undefined) return;
      const { head } = decoded;
      const job = { head, reply, body: message.data };
      if (head.kind !== "models" && refuses()) {
        machine.jobs.push(job);
        machine.say(reply, ["reject", { reason: "busy", message: "Busy." }]);
        return;
      }
      machine.say(reply, ["accept", { state: "queued" }]);
      if (head.kind === "models") machine.asked += 1;
      else machine.jobs.push(job);
      for (const said of head.kind === "models" ? catalogue() : answer(job)) machine.say(reply, said);
    });
    broker.subscribe(rollcallSubject, () => machine.announce());
    machine.announce();
    if (announces) {
      const announcing: Timer = clock.every(announceIntervalMs, () => machine.announce());
      machine.#parts.defer(() => announcing.cancel());
    }
    return machine;
  }

  /** Says what it is, or something else about itself. */
  announce(lies: object = {}): void {
    const load = { slots: 1, running: 0, queued: 0, queueMax: 1 };
    const about = { catalogueDigest: "mean", wire: frameVersion, scale: 1 };
    const { machine, epoch } = this;
    const presence = {
      machine,
      epoch,
      state: "ready",
      runtime: "mean",
      ...load,
      ...about,
      ...this.#presence(),
      ...lies,
    };
    this.#broker.publish(presenceSubject(machine), encodeJson(presence));
  }

  /** Says one thing on any subject, with headers that nobody asked for. */
  say(subject: string, [kind, payload, sequence = 0]: Said): void {
    const bytes = payload instanceof Uint8Array ? payload : encodeJson(payload);
    const headers = { "set-cookie": "canary=1", "x-canary": "1" };
    this.#broker.publish(subject, encodeFrame({ kind, sequence }, bytes), { headers });
  }

  /** When this resolves the broker has all that was said. */
  flush(): Promise<void> {
    return this.#broker.flush();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#parts.disposeAsync();
  }
}

/** What a machine says that offers these. */
export function offering(models: readonly unknown[]): readonly Said[] {
  const bytes = jsonPayload(models);
  const frames: Said[] = [];
  const frameBytes = 200_000;
  for (let from = 0; from < bytes.byteLength; from += frameBytes) {
    frames.push(["data", bytes.subarray(from, from + frameBytes), frames.length + 1]);
  }
  return [...frames, ["end", handMadeEnd, frames.length + 1]];
}
