import {
  faultMessageCharactersMax,
  faultReasonCharactersMax,
  type AcceptPayload,
  type FaultPayload,
  type JobState,
  type Usage,
} from "#shared/protocol/frame-payload.ts";
import type { JobHead } from "#shared/protocol/job.ts";
import type { FaultCode, Fault } from "#shared/fault/fault.ts";
import type { Route } from "../machine/offer.ts";
import type { Silence } from "../runtimes/runtime.ts";
import type { PartCollector } from "./receive-jobs.ts";
import type { FrameEmitter } from "./emit-frames.ts";
import type { Outcome } from "./past-jobs.ts";

/** Faults that are sent at once, even if a part of the answer still waits for a slow client. */
const waitsForNobody: ReadonlySet<FaultCode> = new Set(["cancelled", "shutting_down"]);

/** A job of the agent, from its acceptance until the gateway has its terminal frame. */
export class AgentJob {
  readonly head: JobHead;
  /** The gateway that waits for the job: the one that submitted it, or attached to it last. */
  gateway: string;
  readonly frames: FrameEmitter;
  readonly acceptedAtMs: number;
  /** The runtime and model of the job, for kinds that a model answers. */
  route: Route | undefined;
  readonly #abort = new AbortController();
  state: JobState;
  /** The request body, from its arrival until the answer begins: bodies are large, and answers take long. */
  body: Uint8Array | undefined;
  parts: PartCollector | undefined;
  reservedBytes = 0;
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

  /** Aborts the job's work; the reason becomes its outcome. */
  abort(reason: Fault): void {
    this.#abort.abort(reason);
  }

  /** Records progress and the runtime's phase. Before the first token the phase becomes the job's state. */
  moved(nowMs: number, silence?: Silence): void {
    this.progressAtMs = nowMs;
    this.silence = silence;
    if (silence !== undefined && (this.state === "prefill" || this.state === "loading")) this.state = silence;
  }

  /** Records output; the answer now has `outputTokens` tokens. */
  spoke(nowMs: number, outputTokens: number): void {
    this.outputTokens = outputTokens;
    if (this.firstTokenAtMs !== undefined) return;
    this.state = "running";
    this.firstTokenAtMs = nowMs;
    this.body = undefined;
  }

  /** Sends the one terminal frame. Later outcomes of the same job are ignored. */
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
        queuedMs: Math.round((this.startedAtMs ?? nowMs) - this.acceptedAtMs),
        firstTokenMs: this.firstTokenAtMs === undefined ? null : Math.round(this.firstTokenAtMs - this.acceptedAtMs),
        totalMs: Math.round(nowMs - this.acceptedAtMs),
      },
    });
  }

  accepted(place: number | undefined): AcceptPayload {
    return place === undefined ? { state: this.state } : { state: this.state, position: place };
  }
}

function faultPayloadOf(fault: Fault, usage: Usage | null): FaultPayload {
  const { code, param, runtimeDied } = fault;
  // The stack of a bug stays in this machine's log.
  const reason = fault.internal?.split("\n", 1)[0]?.slice(0, faultReasonCharactersMax);
  const message = fault.message.slice(0, faultMessageCharactersMax);
  const died = runtimeDied ? { runtimeDied } : {};
  return { code, message, ...(param === undefined ? {} : { param }), ...(reason && { reason }), ...died, usage };
}
