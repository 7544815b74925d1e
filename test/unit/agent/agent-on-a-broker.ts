import { onTestFinished } from "vitest";
import { MemoryBroker } from "#shared/broker/memory-broker.ts";
import { createLog } from "#shared/process/log.ts";
import type { ModelMemory } from "#shared/placing/make-room.ts";
import type { ManageAction } from "#shared/protocol/job-bodies.ts";
import { type Control, encodeHead, type JobHead } from "#shared/protocol/job.ts";
import { newEpoch, newToken } from "#shared/protocol/identifiers.ts";
import { beatPayload, encodeJson, type BeatRow } from "#shared/protocol/frame-payload.ts";
import { decodeFrame } from "#shared/protocol/frame.ts";
import { machineSubject, replyPattern, replySubject } from "#shared/protocol/subjects.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { Jobs } from "../../../services/agent/jobs/jobs.ts";
import { JobReceiver } from "../../../services/agent/jobs/receive-jobs.ts";
import type { ModelNotes } from "../../../services/agent/models/model-notes.ts";
import type { Proof } from "../../../services/agent/models/seam-prover.ts";
import { RuntimeWatch } from "../../../services/agent/models/watch-runtimes.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";
import { settle, StubRuntime } from "./stub-runtime.ts";

const machine = "gpu-1";

/** A frame as its gateway reads it: the payload is JSON but for data. */
export interface Heard {
  readonly kind: string;
  readonly sequence: number;
  readonly payload: unknown;
}

/** The jobs of a real agent on a real broker in this process; time and the runtime are the test's. */
export async function agentOnBroker(
  options: {
    readonly slots?: number;
    readonly queueMax?: number;
    readonly runtime?: StubRuntime;
    readonly manage?: readonly ManageAction[];
    /** The memory for models; the agent then decides what is loaded. */
    readonly memory?: { read(): Promise<ModelMemory> };
    /** For how long it keeps to itself that it has a job; not at all unless told. */
    readonly acceptHoldMs?: number;
    readonly tunnelled?: boolean;
    /** The proofs of begun answers; nothing is proved without. */
    readonly proofs?: ModelNotes<Proof>;
    /** What the agent measures to its broker. */
    readonly roundTripMs?: number;
  } = {},
) {
  const { queueMax = 2 } = options;
  const runtime = options.runtime ?? new StubRuntime({ slots: options.slots ?? 1 });
  const clock = new TurnableClock();
  const log = createLog({ level: "silent", name: "test" });
  const timing = { ...timingAt(1), acceptHoldMs: options.acceptHoldMs ?? 0 };
  const epoch = newEpoch(clock.wall());
  const network = new MemoryBroker({ clock, log });
  const broker = Object.assign(network.connect(), { roundTripMs: options.roundTripMs ?? 0 });

  const sources = [{ location: "stub", look: async () => runtime }];
  const plenty = { totalMb: 100_000, freeMb: 100_000 };
  const memory = {
    read: async (): Promise<ModelMemory> => options.memory?.read() ?? plenty,
    diskFreeMb: async () => undefined,
  };
  const watch = new RuntimeWatch({ sources, firstSeen: () => 0, memory, proofs: options.proofs, timing, clock, log });
  const manage = new Set(options.manage);
  const jobs = new Jobs({
    broker,
    runtime: watch,
    timing,
    clock,
    log,
    queueMax,
    manage,
    decidesLoads: options.memory !== undefined,
  });
  await watch.start();
  const { tunnelled } = options;
  const onFence = (): void => undefined;
  const receiving = new JobReceiver({ broker, machine, epoch, jobs, onFence, tunnelled, timing, clock, log });
  onTestFinished(() => {
    receiving.stop();
    void watch.stop();
  });

  async function pass(ms: number): Promise<void> {
    await clock.advanceAwaiting(ms);
    await settle();
  }
  const self = { machine, epoch };
  const connectGateway = (): Gateway => new Gateway({ network, self });
  return { runtime, clock, timing, broker, jobs, watch, settle, pass, connectGateway, gateway: connectGateway() };
}

/** What a gateway says and hears, without its judgement. */
export class Gateway {
  readonly id = newToken();
  readonly connection: ReturnType<MemoryBroker["connect"]>;
  readonly #self: { machine: string; epoch: string };
  readonly #frames = new Map<string, Heard[]>();
  /** The rows of every beat so far. */
  readonly beats: BeatRow[][] = [];

  constructor(options: { network: MemoryBroker; self: { machine: string; epoch: string } }) {
    this.connection = options.network.connect();
    this.#self = options.self;
    this.connection.subscribe(replyPattern(this.id), ({ subject, data }) => this.#hear(subject, data));
  }

  /** Sends a chat job, or another one by its fields, and returns its id when the agent has it. */
  async send(fields: Partial<JobHead> & { body?: Uint8Array; reply?: string } = {}): Promise<string> {
    const { body = encodeJson({ messages: [{ role: "user", content: "Hello" }] }), reply: replyTo, ...head } = fields;
    const { id = newToken() } = head;
    const headers = encodeHead({
      id,
      kind: "chat",
      model: "llama3",
      keyId: "key",
      remainingMs: 600_000,
      bodyBytes: body.byteLength,
      ...head,
    });
    const reply = replyTo ?? replySubject({ gateway: this.id, machine: this.#self.machine, job: id });
    const inside = head.sha256 === undefined ? body : new Uint8Array();
    this.connection.publish(machineSubject(this.#self, "job"), inside, { headers, reply });
    await settle();
    return id;
  }

  async part(id: string, offset: number, bytes: Uint8Array): Promise<void> {
    const headers = encodeHead({ id, offset });
    this.connection.publish(machineSubject(this.#self, "part"), bytes, { headers });
    await settle();
  }

  async say(control: Control, { of }: { of?: string } = {}): Promise<void> {
    const reply = of && replySubject({ gateway: this.id, machine: this.#self.machine, job: of });
    this.connection.publish(machineSubject(this.#self, "control"), encodeJson(control), { ...(reply && { reply }) });
    await settle();
  }

  /** Asks for the frames of a job from this number on. */
  async attach(
    job: string,
    { from, keyId = "key", ...resuming }: { from: number; keyId?: string; resumes?: string; countedTokens?: number },
  ): Promise<void> {
    await this.say({ kind: "attach", job, from, keyId, credit: 1_000_000, ...resuming }, { of: job });
  }

  cancel(id: string): Promise<void> {
    return this.say({ kind: "cancel", job: id, reason: "client_closed" }, { of: id });
  }

  frames(id: string): readonly Heard[] {
    return this.#frames.get(id) ?? [];
  }

  /** The kinds of the frames so far. */
  kinds(id: string): string[] {
    return this.frames(id).map(({ kind }) => kind);
  }

  /** What the last frame says. */
  lastOf(id: string): Heard {
    const last = this.frames(id).at(-1);
    if (last === undefined) throw new Error("no frame came for this job");
    return last;
  }

  /** The job's row in the latest beat. */
  row(id: string): BeatRow | undefined {
    return this.beats.at(-1)?.find(([job]) => job === id);
  }

  #hear(subject: string, data: Uint8Array): void {
    const decoded = decodeFrame(data);
    if (decoded.outcome !== "frame") throw new Error(`the agent sent what is no frame: ${decoded.outcome}`);
    const { kind, sequence, payload } = decoded.frame;
    const text = Buffer.from(payload).toString();
    if (kind === "beat") {
      this.beats.push(beatPayload.parse(JSON.parse(text)).rows);
      return;
    }
    const id = subject.split(".").at(-1) ?? "";
    const heard = { kind, sequence, payload: kind === "data" ? text : (JSON.parse(text) as unknown) };
    this.#frames.set(id, [...this.frames(id), heard]);
  }
}
