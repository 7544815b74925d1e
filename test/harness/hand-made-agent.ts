import { connectNats } from "#shared/broker/nats-broker.ts";
import type { Broker } from "#shared/broker/broker.ts";
import type { OfferedModel } from "#shared/protocol/model.ts";
import { systemClock as clock, type Timer } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import { newEpoch } from "#shared/protocol/identifiers.ts";
import { control, type Control, decodeJobHead, headHeader, type JobHead } from "#shared/protocol/job.ts";
import { decodeJson, encodeJson } from "#shared/protocol/frame-payload.ts";
import { encodeFrame, frameVersion, type FrameKind } from "#shared/protocol/frame.ts";
import { machineSubject, presenceSubject, rollcallSubject } from "#shared/protocol/subjects.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { jsonPayload } from "./answer-payload.ts";

/** What an agent offers that is made for one test. */
export const handMadeModel: OfferedModel = {
  id: "hand-made",
  object: "model",
  created: 1_767_225_600,
  owned_by: "test",
  capabilities: { completion: true, vision: false, embedding: false, tools: false, thinking: false },
  context_window: 4_096,
  size_mb: 1,
  runtime_profile: "auto",
};

/** One job as it came, and the means to answer it frame by frame. */
export interface HandMadeJob {
  readonly head: JobHead;
  readonly body: Uint8Array;
  readonly say: (kind: FrameKind, payload: Uint8Array | object, sequence?: number, outputTokens?: number) => void;
}

/**
 * An agent that says exactly what a test wants, over a real NATS: for what no real agent would say. It announces
 * itself, tells its models, and leaves every other job to the test.
 */
export class HandMadeAgent implements AsyncDisposable {
  readonly #broker: Broker;
  readonly #announcing: Timer;

  private constructor(broker: Broker, announcing: Timer) {
    this.#broker = broker;
    this.#announcing = announcing;
  }

  static async start(options: {
    readonly natsUrl: string;
    readonly machine: string;
    readonly model: OfferedModel | readonly OfferedModel[];
    readonly onJob: (job: HandMadeJob) => void;
    readonly onControl?: (control: Control) => void;
    /** How many jobs it says that it takes at once. */
    readonly slots?: number;
    /** Fields of its presence, read each time that it announces itself. */
    readonly presence?: () => Partial<Presence>;
    /** When it says that it started. */
    readonly startedAt?: number;
  }): Promise<HandMadeAgent> {
    const { natsUrl: url, machine, model, onJob, onControl, slots = 1, startedAt = Date.now() } = options;
    const log = createLog({ level: "silent", name: machine });
    const broker = await connectNats({ url, name: machine, clock, log });
    const epoch = newEpoch(startedAt);
    const load = { slots, running: 0, queued: 0, queueMax: 1 };
    const about = { catalogueDigest: "hand-made", wire: frameVersion, scale: 1 };
    const usual = { machine, epoch, state: "ready", runtime: "hand-made", ...load, ...about };

    broker.subscribe(machineSubject({ machine, epoch }, "job"), (message) => {
      const decoded = decodeJobHead(message.headers?.[headHeader]);
      const { reply } = message;
      if (decoded.outcome !== "head" || reply === undefined) return;
      const { head } = decoded;
      const say: HandMadeJob["say"] = (kind, payload, sequence = 0, outputTokens = 0) => {
        const bytes = payload instanceof Uint8Array ? payload : encodeJson(payload);
        broker.publish(reply, encodeFrame({ kind, sequence, outputTokens }, bytes));
      };
      say("accept", { state: "queued" });
      if (head.kind !== "models") {
        onJob({ head, body: message.data, say });
        return;
      }
      say("data", jsonPayload([model].flat()), 1);
      say("end", handMadeEnd, 2);
    });
    broker.subscribe(machineSubject({ machine, epoch }, "control"), ({ data }) => {
      const told = decodeJson(control, data);
      if (told !== undefined) onControl?.(told);
    });
    const announce = (): void =>
      void broker.publish(presenceSubject(machine), encodeJson({ ...usual, ...options.presence?.() }));
    broker.subscribe(rollcallSubject, announce);
    announce();
    return new HandMadeAgent(broker, clock.every(timingAt(1).presenceIntervalMs, announce));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#announcing.cancel();
    await this.#broker.close();
  }
}

/** The payload of an end frame that says nothing but that all is well. */
export const handMadeEnd = {
  finishReason: "stop",
  usage: null,
  timings: { queuedMs: 0, firstTokenMs: 0, totalMs: 0 },
} as const;
