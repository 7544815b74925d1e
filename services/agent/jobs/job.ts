import type { Usage, FinishReason } from "#shared/protocol/answer-events.ts";
import {
  faultMessageCharactersMax,
  type FaultPayload,
  faultReasonCharactersMax,
  type JobState,
} from "#shared/protocol/frame-payload.ts";
import type { Attach, JobHead } from "#shared/protocol/job.ts";
import { limits } from "#shared/protocol/limits.ts";
import { type ReplyAddress, replySubject } from "#shared/protocol/subjects.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import { type FaultCode, Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { ServedModel } from "../models/model-set.ts";
import type { Silence } from "../runtimes/runtime.ts";
import { PartCollector } from "./collect-parts.ts";
import { Outbox } from "./outbox.ts";
import { ResumeCounts } from "./resume-counts.ts";
import type { Uplink } from "./uplink.ts";

/** The kinds of jobs that take no slot of a runtime. */
const besideSlots: ReadonlySet<JobHead["kind"]> = new Set(["models", "manage", "count"]);

/** Faults that are sent at once, even if a part of the answer still waits for a slow client. */
const waitsForNobody: ReadonlySet<FaultCode> = new Set(["cancelled", "shutting_down"]);

/** The end of a job, as its one terminal frame reports it. */
export type Outcome =
  | {
      readonly outcome: "end";
      readonly finishReason?: FinishReason | undefined;
      readonly usage?: Usage | undefined;
    }
  | { readonly outcome: "fault"; readonly fault: Fault; readonly usage?: Usage | undefined };

interface JobParts {
  readonly body: Uint8Array;
  readonly reply: ReplyAddress;
  readonly served: ServedModel | undefined;
  readonly uplink: Uplink;
  readonly clock: Pick<Clock, "now">;
}

/**
 * A job of the agent, from its head to its terminal frame and beyond. Its outbox has all frames that it sends.
 *
 *     state      event                                             next state
 *     (none)     its head comes                                    receiving if its body comes in parts, else queued
 *     receiving  the last part comes                               queued
 *     queued     the load of its model begins                      loading, and queued again if the load fails
 *     queued     its model is in memory and a slot is free         prefill; loading for a job that manages models
 *     prefill    its runtime reports a load, or the prompt         loading, prefill
 *     prefill    its runtime refuses it as too much beside others  queued
 *     prefill    the first piece of the answer comes               running
 *     running    its runtime is done                               ended: the outbox sends the terminal frame last
 *     any        a fault, a cancel, a time limit                   ended
 *     ended      its receipt comes, or `terminalRepeatForMs` pass  forgotten, or kept if a client may resume the answer
 *     kept       a client resumes the answer                       ended, followed by another gateway
 *     kept       `resumableForMs` pass, or newer ones take its place  forgotten
 *
 * `Jobs` has the ended and the kept ones. A client may also resume an answer in the states before; it goes on meanwhile.
 */
export class Job {
  readonly head: JobHead;
  readonly outbox: Outbox;
  /** The gateway that submitted the job, or attached to it last. */
  owner: string;
  /** The time since which no gateway waits for the job, since its owner is gone or has all of it. */
  leftAtMs: number | undefined;
  /** The tokens that gateways count of the answer, if a client may resume it. */
  readonly counts: ResumeCounts | undefined;
  readonly acceptedAtMs: number;
  /** The runtime and model of the job, for kinds that a model answers. */
  served: ServedModel | undefined;
  state: JobState;
  /** The request body, from its arrival until the answer begins: bodies are large, and answers take long. */
  body: Uint8Array | undefined;
  /** Sequences that the runtime works on at once for this job. */
  width = 1;
  /** The runtime's phase while it produces no output, if its latest progress report named one. */
  silence: Silence | undefined;
  progressAtMs: number;
  /** True while the answer is ahead of the gateway's credit, so that the runtime is not read on. */
  isHeldBack = false;
  startedAtMs: number | undefined;
  firstTokenAtMs: number | undefined;
  #parts: PartCollector | undefined;
  readonly #clock: Pick<Clock, "now">;
  readonly #abort = new AbortController();
  readonly signal = this.#abort.signal;

  constructor(head: JobHead, { body, reply, served, uplink, clock }: JobParts) {
    this.head = head;
    this.outbox = new Outbox(head, { uplink, clock, subject: replySubject(reply) });
    this.owner = reply.gateway;
    this.counts = head.resumable && new ResumeCounts(head.resumable);
    this.served = served;
    this.#clock = clock;
    this.acceptedAtMs = this.progressAtMs = clock.now();
    const isWhole = head.sha256 === undefined;
    this.state = isWhole ? "queued" : "receiving";
    this.body = isWhole ? body : undefined;
  }

  /** The gateway that waits for the job. */
  get waiting(): string | undefined {
    return this.leftAtMs === undefined ? this.owner : undefined;
  }

  get takesSlot(): boolean {
    return !besideSlots.has(this.head.kind);
  }

  /** True if the job has begun and is not over. */
  get isRunning(): boolean {
    return this.startedAtMs !== undefined && this.state !== "ended";
  }

  /** True if the job is here whole and has not begun. */
  get isWaiting(): boolean {
    return this.startedAtMs === undefined && this.state !== "ended" && this.state !== "receiving";
  }

  /** The bytes of a body in parts. They count from the job's acceptance until it begins or ends. */
  get receivingBytes(): number {
    const isHere = this.state === "receiving" || this.isWaiting;
    return this.head.sha256 !== undefined && isHere ? this.head.bodyBytes : 0;
  }

  /** True if this request of a client may have the answer from its beginning on. */
  mayResume(request: string): boolean {
    return this.outbox.isResumable && this.counts?.mayResume(request) === true;
  }

  /** Sends the frames from a number on to this gateway, which follows the job from now on. False if one is no longer kept. */
  attach(attach: Attach, reply: ReplyAddress): boolean {
    this.owner = reply.gateway;
    this.leftAtMs = undefined;
    return this.outbox.attach(attach, replySubject(reply));
  }

  /** Notes that no gateway waits for the job any more. */
  leave(): void {
    this.leftAtMs ??= this.#clock.now();
  }

  /** Tells the gateway that the job is accepted, and its position in the queue if it waits. */
  accept(position: number | undefined): void {
    this.outbox.say("accept", { state: this.state, position });
  }

  /** Takes a part of the body, and acknowledges what is here. Once the body is whole, the job is queued. */
  takePart(offset: number, bytes: Uint8Array): "incomplete" | "whole" | "corrupt" {
    const { bodyBytes, sha256 } = this.head;
    if (sha256 === undefined) return "incomplete";
    if (this.state !== "receiving") {
      // The last `part-ack` was lost, and the gateway goes on asking for it.
      this.outbox.say("part-ack", { received: bodyBytes });
      return "incomplete";
    }
    this.#parts ??= new PartCollector({ bodyBytes, sha256 });
    const collected = this.#parts.add(offset, bytes);
    this.progressAtMs = this.#clock.now();
    if (collected === "corrupt") return "corrupt";
    this.outbox.say("part-ack", { received: this.#parts.received });
    if (collected === "whole") {
      this.body = this.#parts.body;
      this.#parts = undefined;
      this.state = "queued";
    }
    return collected;
  }

  /** Tells whether the model of a job that waits is being loaded. */
  awaitLoad(isLoading: boolean): void {
    this.state = isLoading ? "loading" : "queued";
    this.progressAtMs = this.#clock.now();
  }

  begin(state: "prefill" | "loading", served = this.served): void {
    this.state = state;
    this.served = served;
    this.startedAtMs = this.progressAtMs = this.#clock.now();
    this.silence = undefined;
  }

  putBack(): void {
    this.state = "queued";
    this.startedAtMs = undefined;
  }

  /** Aborts the job's work; the reason becomes its outcome. */
  abort(reason: Fault): void {
    this.#abort.abort(reason);
  }

  /** Notes the first piece of the answer. */
  answering(): void {
    this.firstTokenAtMs = this.progressAtMs;
    this.state = "running";
    this.body = undefined;
  }

  /** Sends the one terminal frame. Later outcomes of the same job are ignored. */
  end(outcome: Outcome): void {
    if (this.state === "ended") return;
    this.state = "ended";
    this.body = undefined;
    this.#parts = undefined;
    const usage = outcome.usage ?? null;
    if (outcome.outcome === "fault") {
      if (waitsForNobody.has(outcome.fault.code)) this.outbox.drop();
      this.outbox.end("fault", faultPayloadOf(outcome.fault, usage));
      return;
    }
    const nowMs = this.#clock.now();
    this.outbox.end("end", {
      finishReason: outcome.finishReason ?? null,
      usage,
      timings: {
        queuedMs: Math.round((this.startedAtMs ?? nowMs) - this.acceptedAtMs),
        firstTokenMs: this.firstTokenAtMs === undefined ? null : Math.round(this.firstTokenAtMs - this.acceptedAtMs),
        totalMs: Math.round(nowMs - this.acceptedAtMs),
      },
    });
  }

  /**
   * Returns the fault that ends a job that waited, hung or ran for too long, or that ran without a client for too long or got
   * too long to be resumed; undefined otherwise.
   */
  overdue(nowMs: number, timing: Timing): Fault | undefined {
    if (this.state === "ended") return undefined;
    const timedOut = (message: string): Fault => new Fault("upstream_timeout", { message });
    const cancelled = (message: string): Fault => new Fault("cancelled", { message });
    const isManage = this.head.kind === "manage";
    const totalMs = Math.min(this.head.remainingMs, isManage ? Infinity : timing.jobTotalMs);
    if (nowMs - this.acceptedAtMs > totalMs) {
      return timedOut(`The request took longer than ${totalMs} ms in all (jobTotalMs).`);
    }
    const { leftAtMs } = this;
    const { resumableForMs } = timing;
    if (leftAtMs !== undefined && nowMs - leftAtMs >= resumableForMs)
      return cancelled(`No client resumed the answer within ${resumableForMs} ms (resumableForMs).`);
    if (leftAtMs !== undefined && this.outbox.isHeldBack)
      return cancelled(`The answer is longer than the ${limits.resumableBytes} bytes that are kept (resumableBytes).`);
    if (this.state === "queued" || this.isHeldBack) return undefined;
    const isAnswering = this.state === "running" && this.silence === undefined;
    const ofRuntime = isManage ? "manageSilentMs" : isAnswering ? "noProgressMs" : "firstTokenMs";
    const limit = this.state === "receiving" ? "partsWaitMs" : ofRuntime;
    return nowMs - this.progressAtMs > timing[limit] ? timedOut(silences[limit](timing[limit])) : undefined;
  }
}

/** The messages of jobs that were silent for too long, by their limit. */
const silences = {
  partsWaitMs: (ms: number) => `The rest of the request did not reach the machine within ${ms} ms (partsWaitMs).`,
  manageSilentMs: (ms: number) => `The runtime showed no progress for ${ms} ms (manageSilentMs).`,
  noProgressMs: (ms: number) => `The model said nothing for ${ms} ms in the middle of its answer (noProgressMs).`,
  firstTokenMs: (ms: number) => `The model said nothing for ${ms} ms before its answer (firstTokenMs).`,
};

function faultPayloadOf(fault: Fault, usage: Usage | null): FaultPayload {
  const { code, param, died, retryAfterSeconds } = fault;
  // The stack of a bug stays in this machine's log.
  const reason = fault.internal?.split("\n", 1)[0]?.slice(0, faultReasonCharactersMax) || undefined;
  const message = fault.message.slice(0, faultMessageCharactersMax);
  return { code, message, param, reason, retryAfterSeconds, runtimeDied: died === "runtime" || undefined, usage };
}
