import {
  faultMessageCharactersMax,
  type AcceptPayload,
  type FaultPayload,
  type JobState,
  type Usage,
} from "#shared/protocol/frame-payload.ts";
import type { JobHead } from "#shared/protocol/job.ts";
import type { FaultCode } from "#shared/fault/fault-code.ts";
import type { Fault } from "#shared/fault/fault.ts";
import type { Route } from "../offer/offer.ts";
import type { Silence } from "../runtimes/runtime.ts";
import type { PartCollector } from "./collect-parts.ts";
import type { FrameEmitter } from "./emit-frames.ts";
import type { Outcome } from "./outcome.ts";

/** Faults that are told at once, whatever of the answer still waits for a client that is slow. */
const waitsForNobody: ReadonlySet<FaultCode> = new Set(["cancelled", "shutting_down"]);

/** One job as the agent holds it, from its acceptance until the gateway has its terminal frame. */
export class AgentJob {
  readonly head: JobHead;
  /** Who waits for it: the one that submitted it, or attached to it last. */
  gateway: string;
  readonly frames: FrameEmitter;
  readonly acceptedAtMs: number;
  /** Who is to run it, for kinds that a model answers. */
  route: Route | undefined;
  readonly #abort = new AbortController();
  state: JobState;
  /** Once it is there, and until its answer begins: bodies are large, and answers take long. */
  body: Uint8Array | undefined;
  parts: PartCollector | undefined;
  reservedBytes = 0;
  /** How many sequences its runtime works on for it at once. */
  width = 1;
  /** What its runtime is at while it says nothing, if it said so when it was last heard of. */
  silence: Silence | undefined;
  progress = 0;
  progressAtMs: number;
  /** The answer is ahead of the credit that its gateway gives, so its runtime is not read on. */
  heldBack = false;
  startedAtMs: number | undefined;
  firstTokenAtMs: number | undefined;

  constructor(options: {
    head: JobHead;
    gateway: string;
    frames: FrameEmitter;
    state: JobState;
    route: Route | undefined;
    nowMs: number;
  }) {
    this.head = options.head;
    this.gateway = options.gateway;
    this.frames = options.frames;
    this.state = options.state;
    this.route = options.route;
    this.acceptedAtMs = options.nowMs;
    this.progressAtMs = options.nowMs;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Stops what runs for this job; the reason becomes its outcome. */
  abort(reason: Fault): void {
    this.#abort.abort(reason);
  }

  /** The job has come on, and before its first token also with what its runtime is at. */
  moved(nowMs: number, silence?: Silence): void {
    this.progress += 1;
    this.progressAtMs = nowMs;
    this.silence = silence;
    if (silence !== undefined && (this.state === "prefill" || this.state === "loading")) this.state = silence;
  }

  /** Something of the answer is there. */
  spoke(nowMs: number): void {
    if (this.firstTokenAtMs !== undefined) return;
    this.state = "running";
    this.firstTokenAtMs = nowMs;
    this.body = undefined;
  }

  /** Sends the one terminal frame. Later outcomes of the same job change nothing. */
  end(outcome: Outcome, nowMs: number): void {
    if (this.state === "ended") return;
    this.state = "ended";
    this.body = undefined;
    this.parts = undefined;
    const usage = outcome.usage ?? null;
    if (outcome.outcome === "fault") {
      this.frames.fault(faultPayloadOf(outcome.fault, usage), { dropping: waitsForNobody.has(outcome.fault.code) });
      return;
    }
    this.frames.end({
      finishReason: outcome.finishReason ?? null,
      usage,
      timings: {
        queuedMs: (this.startedAtMs ?? nowMs) - this.acceptedAtMs,
        firstTokenMs: this.firstTokenAtMs === undefined ? null : this.firstTokenAtMs - this.acceptedAtMs,
        totalMs: nowMs - this.acceptedAtMs,
      },
    });
  }

  accepted(place: number | undefined): AcceptPayload {
    return place === undefined ? { state: this.state } : { state: this.state, position: place };
  }
}

function faultPayloadOf(fault: Fault, usage: Usage | null): FaultPayload {
  const { code, param, runtimeDied } = fault;
  const message = fault.message.slice(0, faultMessageCharactersMax);
  const died = runtimeDied ? { runtimeDied } : {};
  return { code, message, ...(param === undefined ? {} : { param }), ...died, usage };
}
