import type { PartCollector } from "./collect-parts.ts";
import type { Usage, FinishReason } from "#shared/protocol/answer-events.ts";
import {
  faultMessageCharactersMax,
  faultReasonCharactersMax,
  type AcceptPayload,
  type FaultPayload,
  type JobState,
  type RejectPayload,
} from "#shared/protocol/frame-payload.ts";
import type { DataRecord } from "#shared/protocol/frame.ts";
import type { JobHead } from "#shared/protocol/job.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import { type FaultCode, Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { ServedModel } from "../models/model-set.ts";
import type { Silence } from "../runtimes/runtime.ts";
import type { Outbox } from "./outbox.ts";

/** Bounds the `manage` jobs at once: models that are pulled, removed, loaded or unloaded. */
const manageJobsMax = 8;

/** Bounds the `count` jobs at once. They take no slot, and run beside the answers. */
const countJobsMax = 32;

/** The agent's state that admission checks, beside the schedule's own bounds. */
interface Admission {
  readonly draining: boolean;
  /** True if the machine offers the model that the job names. */
  readonly offersModel: boolean;
  /** The `manage` jobs that the agent holds. */
  readonly managing: number;
  /** The `count` jobs that the agent holds. */
  readonly counting: number;
  readonly jobs: number;
  readonly receivingBytes: number;
}

/** Returns why the agent rejects a job, or undefined when it accepts it. Only hard facts count, no predictions. */
export function judgeAdmission(head: JobHead, agent: Admission): RejectPayload | undefined {
  if (agent.draining) return { reason: "draining", message: "The machine shuts down." };
  if (head.kind === "models") return undefined;
  if (head.kind === "manage") {
    return agent.managing < manageJobsMax
      ? undefined
      : busy(`The machine is busy with the models of ${manageJobsMax} other requests already (manageJobsMax).`);
  }
  if (!agent.offersModel) return { reason: "unknown_model", message: "The machine does not offer this model." };
  if (head.kind === "count" && agent.counting >= countJobsMax) {
    return busy(`The machine counts the tokens of ${countJobsMax} requests already (countJobsMax).`);
  }
  if (agent.jobs >= limits.jobsPerAgentMax) {
    return busy(`The machine holds ${limits.jobsPerAgentMax} requests already (jobsPerAgentMax).`);
  }
  if (head.sha256 !== undefined && agent.receivingBytes + head.bodyBytes > limits.receivingBytesMax) {
    return busy(`The machine is receiving ${limits.receivingBytesMax} bytes of requests already (receivingBytesMax).`);
  }
  return undefined;
}

export function busy(message: string): RejectPayload {
  return { reason: "busy", message };
}

/** Faults that are sent at once, even if a part of the answer still waits for a slow client. */
const waitsForNobody: ReadonlySet<FaultCode> = new Set(["cancelled", "shutting_down"]);

/** A job that moved away from a gateway: the request that had it there, and the tokens up to which that gateway counts. */
type LostJob = Pick<FaultPayload, "movedFrom" | "countedTokens">;

/** A job of the agent, from its acceptance until the gateway has its terminal frame. */
export class AgentJob {
  readonly head: JobHead;
  /** The gateway that has the job: the one that submitted it, or attached to it last. */
  owner: string;
  /** The time since which no gateway waits for the job, since its owner is gone or has all of it. */
  leftAtMs: number | undefined;
  /** The tokens of its answer that the gateways before the owner count. */
  countedTokens = 0;
  /** The tokens that the owner says that it counts. Undefined for an older gateway, which counts what was sent to it. */
  saidTokens: number | undefined;
  /** The request by which a client resumed the answer last, and how often that was. */
  resumedBy: string | undefined;
  resumes = 0;
  /** The gateways that the job moved away from. They have lost it for good, unless a new request resumes it there. */
  readonly lostBy = new Map<string, LostJob>();
  readonly frames: Outbox;
  readonly acceptedAtMs: number;
  /** The runtime and model of the job, for kinds that a model answers. */
  served: ServedModel | undefined;
  readonly #clock: Pick<Clock, "now">;
  readonly #abort = new AbortController();
  state: JobState;
  /** The request body, from its arrival until the answer begins: bodies are large, and answers take long. */
  body: Uint8Array | undefined;
  parts: PartCollector | undefined;
  /** Sequences that the runtime works on at once for this job. */
  width = 1;
  /** The runtime's phase while it produces no output, if its latest progress report named one. */
  silence: Silence | undefined;
  /** Tokens of the answer so far, sent or not. */
  outputTokens = 0;
  progressAtMs: number;
  /** True while the answer is ahead of the gateway's credit, so that the runtime is not read on. */
  heldBack = false;
  startedAtMs: number | undefined;
  firstTokenAtMs: number | undefined;

  constructor(job: {
    readonly head: JobHead;
    readonly body: Uint8Array;
    readonly gateway: string;
    readonly frames: Outbox;
    readonly served: ServedModel | undefined;
    readonly clock: Pick<Clock, "now">;
  }) {
    const { head, body } = job;
    this.head = head;
    this.owner = job.gateway;
    this.frames = job.frames;
    this.served = job.served;
    this.#clock = job.clock;
    this.acceptedAtMs = this.progressAtMs = job.clock.now();
    this.state = head.sha256 === undefined ? "queued" : "receiving";
    this.body = head.sha256 === undefined ? body : undefined;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** The gateway that waits for the job. */
  get gateway(): string | undefined {
    return this.leftAtMs === undefined ? this.owner : undefined;
  }

  /** The tokens of its answer that the gateways count so far. */
  get countedSoFar(): number {
    return Math.max(this.countedTokens, this.saidTokens ?? this.frames.sentTokens);
  }

  /** The bytes of a body in parts. They count from the job's acceptance until it begins or ends. */
  get receivingBytes(): number {
    const isOver = this.startedAtMs !== undefined || this.state === "ended";
    return this.head.sha256 === undefined || isOver ? 0 : this.head.bodyBytes;
  }

  begin(state: "prefill" | "loading"): void {
    this.state = state;
    this.startedAtMs = this.#clock.now();
    this.moved();
  }

  /** Tells whether the model of a job that waits is being loaded. */
  awaitLoad(isLoading: boolean): void {
    this.state = isLoading ? "loading" : "queued";
    this.progressAtMs = this.#clock.now();
  }

  putBack(): void {
    this.state = "queued";
    this.startedAtMs = undefined;
  }

  /** Aborts the job's work; the reason becomes its outcome. */
  abort(reason: Fault): void {
    this.#abort.abort(reason);
  }

  /** Records progress and the runtime's phase. Before the first token the phase becomes the job's state. */
  moved(silence?: Silence): void {
    this.progressAtMs = this.#clock.now();
    this.silence = silence;
    if (silence !== undefined && (this.state === "prefill" || this.state === "loading")) this.state = silence;
  }

  /** Writes a part of the answer. The runtime is not read on until the returned promise, if any, resolves. */
  write(records: readonly DataRecord[], outputTokens: number): Promise<void> | undefined {
    this.moved(this.silence);
    if (records.length > 0) this.#spoke(outputTokens);
    const room = this.frames.write(records, outputTokens);
    return room === undefined ? undefined : this.#holdBack(room);
  }

  #spoke(outputTokens: number): void {
    this.outputTokens = outputTokens;
    if (this.firstTokenAtMs !== undefined) return;
    this.state = "running";
    this.firstTokenAtMs = this.progressAtMs;
    this.body = undefined;
  }

  async #holdBack(room: Promise<void>): Promise<void> {
    this.heldBack = true;
    await room;
    this.heldBack = false;
    this.moved(this.silence);
  }

  /** Sends the one terminal frame. Later outcomes of the same job are ignored. */
  end(outcome: Outcome): void {
    if (this.state === "ended") return;
    this.state = "ended";
    this.body = undefined;
    this.parts = undefined;
    const usage = outcome.usage ?? null;
    if (outcome.outcome === "fault") {
      if (waitsForNobody.has(outcome.fault.code)) this.frames.drop();
      this.frames.end("fault", faultPayloadOf(outcome.fault, usage));
      return;
    }
    const nowMs = this.#clock.now();
    this.frames.end("end", {
      finishReason: outcome.finishReason ?? null,
      usage,
      timings: {
        queuedMs: Math.round((this.startedAtMs ?? nowMs) - this.acceptedAtMs),
        firstTokenMs: this.firstTokenAtMs === undefined ? null : Math.round(this.firstTokenAtMs - this.acceptedAtMs),
        totalMs: Math.round(nowMs - this.acceptedAtMs),
      },
    });
  }

  /** Tells the gateway that the job is accepted, and its place in the queue if it waits. */
  sayAccepted(place: number | undefined): void {
    this.frames.say("accept", { state: this.state, position: place } satisfies AcceptPayload);
  }
}

function faultPayloadOf(fault: Fault, usage: Usage | null): FaultPayload {
  const { code, param, died, retryAfterSeconds } = fault;
  // The stack of a bug stays in this machine's log.
  const reason = fault.internal?.split("\n", 1)[0]?.slice(0, faultReasonCharactersMax) || undefined;
  const message = fault.message.slice(0, faultMessageCharactersMax);
  return { code, message, param, reason, retryAfterSeconds, runtimeDied: died === "runtime" || undefined, usage };
}

type Progress = Pick<AgentJob, "state" | "acceptedAtMs" | "progressAtMs"> &
  Partial<Pick<AgentJob, "frames" | "heldBack" | "leftAtMs" | "silence">> & {
    readonly head: Pick<JobHead, "kind" | "remainingMs">;
  };

/**
 * Returns the fault that ends a job that waited, hung or ran for too long, or that ran without a client for too long or got
 * too long to be resumed; undefined otherwise.
 */
export function judgeProgress(job: Progress, nowMs: number, timing: Timing): Fault | undefined {
  if (job.state === "ended") return undefined;
  const totalMs = Math.min(job.head.remainingMs, job.head.kind === "manage" ? Infinity : timing.jobTotalMs);
  if (nowMs - job.acceptedAtMs > totalMs) {
    return timedOut(`The request took longer than ${totalMs} ms in all (jobTotalMs).`);
  }
  const { resumableForMs } = timing;
  if (job.leftAtMs !== undefined && nowMs - job.leftAtMs >= resumableForMs)
    return cancelled(`No client resumed the answer within ${resumableForMs} ms (resumableForMs).`);
  if (job.leftAtMs !== undefined && job.frames?.isHeldBack)
    return cancelled(`The answer is longer than the ${limits.resumableBytes} bytes that are kept (resumableBytes).`);
  const silentMs = nowMs - job.progressAtMs;
  if (job.state === "queued" || job.heldBack) return undefined;
  if (job.state === "receiving") {
    return silentMs > timing.partsWaitMs
      ? timedOut(`The rest of the request did not reach the machine within ${timing.partsWaitMs} ms (partsWaitMs).`)
      : undefined;
  }
  if (job.head.kind === "manage") {
    return silentMs > timing.manageSilentMs
      ? timedOut(`The runtime showed no progress for ${timing.manageSilentMs} ms (manageSilentMs).`)
      : undefined;
  }
  if (job.state === "running" && job.silence === undefined) {
    return silentMs > timing.noProgressMs
      ? timedOut(`The model said nothing for ${timing.noProgressMs} ms in the middle of its answer (noProgressMs).`)
      : undefined;
  }
  return silentMs > timing.firstTokenMs
    ? timedOut(`The model said nothing for ${timing.firstTokenMs} ms before its answer (firstTokenMs).`)
    : undefined;
}

function cancelled(message: string): Fault {
  return new Fault("cancelled", { message });
}

function timedOut(message: string): Fault {
  return new Fault("upstream_timeout", { message });
}

/** The end of a job, as its one terminal frame reports it. */
export type Outcome =
  | {
      readonly outcome: "end";
      readonly finishReason?: FinishReason | undefined;
      readonly usage?: Usage | undefined;
    }
  | { readonly outcome: "fault"; readonly fault: Fault; readonly usage?: Usage | undefined };
