import { Fault } from "#shared/fault/fault.ts";
import {
  acceptPayload,
  decodeJson,
  faultPayload,
  partAckPayload,
  rejectPayload,
  type BeatRow,
  type EndPayload,
  type RejectPayload,
  type Usage,
} from "#shared/protocol/frame-payload.ts";
import type { Frame } from "#shared/protocol/frame.ts";
import type { JobKind } from "#shared/protocol/job.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import { judgeSilence } from "./judge-silence.ts";
import { readEnd } from "./read-end.ts";
import { machineDisconnected, machineFault, machineOffline } from "./machine-fault.ts";
import type { PartSender } from "./send-parts.ts";

/** A job as it is offered to a machine, with the model by its id there. */
export interface JobOffer {
  readonly job: string;
  readonly machine: string;
  readonly model: string;
}

/** What the owner of a request is told while its job is under way. All calls come before the outcome. */
export interface JobListener {
  /** A machine is about to be offered the job; it is the first, or whoever was before did not bring it to its end. */
  onOffer?(offer: JobOffer): void;
  /** The machine did not take the job that it was offered. */
  onRefused?(fault: Fault): void;
  /** The machine has the job, which may have been offered to others before. */
  onAccept?(machine: string): void;
  /** A piece of the answer, exactly as the client is to be sent it; with it the answer has so many tokens. */
  onData(bytes: Uint8Array, outputTokens: number): void;
  /** What the machine says at the end that the job took, if it knows. */
  onUsage?(usage: Usage): void;
  /** What the machine says at the end of how long the job waited and ran there. */
  onTimings?(timings: EndPayload["timings"]): void;
  /**
   * How much of what it was told its client has not taken yet. Who has no client to wait for takes all at once, and has no
   * such thing.
   */
  backlogBytes?(): number;
  /** How far a machine may run ahead of it, where that is not as far as usual. */
  readonly creditBytes?: number;
  /** Whether anything of the answer is out. Who does not tell passes on every piece. */
  hasSaid?(): boolean;
  /** Called at a steady pace for as long as the job is open, with the job's latest row of its machine's beats. */
  onTick?(nowMs: number, row: BeatRow | undefined): void;
}

export type JobOutcome =
  | { readonly outcome: "end"; readonly end: EndPayload }
  /** The machine did not take the job and nothing of it was begun: another machine may. */
  | { readonly outcome: "not-taken"; readonly fault: Fault }
  /** The machine took it and it failed; with `said`, a part of the answer is out and no other machine can give the rest. */
  | { readonly outcome: "fault"; readonly fault: Fault; readonly said: boolean };

interface FollowOptions {
  readonly machine: string;
  readonly kind: JobKind;
  readonly remainingMs: number;
  /** How far the answer may run ahead of what its client has taken. */
  readonly creditBytes: number;
  /** How long the machine has for its first word; after it the job counts as not taken. */
  readonly acceptWithinMs: number;
  readonly listener: JobListener;
  readonly wire: JobWire;
  readonly timing: Timing;
  readonly nowMs: number;
  readonly settle: (outcome: JobOutcome) => void;
}

/** What a follower can say to the machine about its job. */
export interface JobWire {
  /** The machine has the job. */
  accepted(): void;
  sendJob(): void;
  /** A part of the answer is here, so no other machine will be asked and nobody needs the body any more. */
  bodyTaken(): void;
  sendProbe(): void;
  /** Asks for all frames from this number on. */
  sendAttach(from: number, credit: number): void;
  sendCredit(taken: number, limit: number): void;
  sendCancel(reason: "client_closed" | "slow_client" | "gave_up"): void;
  sendFinish(): void;
  /** What was missing of the answer is there; it took so many frames. */
  gapFilled?(frames: number): void;
  /** The machine is not there, by the broker's word or by its silence. */
  machineNotReached(): void;
  /** Whether the machine is still to be heard since the gateway's own connection came up: it may be just behind. */
  machineAwaited(): boolean;
}

/**
 * One job as its gateway sees it, from the first message to its one outcome. It sees to it that no frame is missing: what
 * is, it asks for again, and when that does not come it ends the job. It notices when the machine falls silent, and
 * parses nothing of the answer.
 */
export class FrameFollower {
  readonly #options: FollowOptions;
  /** Until all of the body is there, and not longer, since it holds the body. */
  #parts: PartSender | undefined;
  readonly #startedAtMs: number;
  #heardAtMs: number;
  #accepted = false;
  #settled = false;
  #submissions = 0;
  /** The first time that the job was sent nobody said that it found no one; and of a later time it was said. */
  #wentOut = false;
  #diedWithIt = false;
  #resendAtMs: number;
  /** Until then nothing falls due by time alone. */
  #restsUntilMs = 0;
  #probedAtMs = 0;
  #nextSequence = 1;
  /** The highest number that the machine is known to have sent. */
  #sentSequence = 0;
  /** Since when frames are missing, or when the last one of them came. */
  #missingSinceMs: number | undefined;
  #attachedAtMs = -Infinity;
  #cameAgain = 0;
  #receivedBytes = 0;
  /** A part of the answer is out, so that no other machine can give it. */
  #said = false;
  #takenBytes = 0;
  #creditLimit: number;
  #row: BeatRow | undefined;

  /** `parts` sends the body where it is too large for one message. */
  constructor(options: FollowOptions, parts?: PartSender) {
    const { timing, nowMs } = options;
    this.#options = options;
    this.#parts = parts;
    this.#startedAtMs = nowMs;
    this.#heardAtMs = nowMs;
    this.#resendAtMs = nowMs + timing.acceptWaitMs;
    this.#creditLimit = options.creditBytes;
  }

  submit(): void {
    this.#submissions += 1;
    if (this.#submissions === 1) this.#wentOut = true;
    this.#options.wire.sendJob();
  }

  frame(frame: Frame, nowMs: number): void {
    if (this.#settled) return;
    this.#heardAtMs = nowMs;
    if (frame.kind !== "reject") this.#accept(frame, nowMs);
    switch (frame.kind) {
      case "reject": {
        const told = decodeJson(rejectPayload, frame.payload);
        if (!this.#accepted) this.#settle({ outcome: "not-taken", fault: faultOfReject(told) });
        return;
      }
      case "part-ack": {
        const told = decodeJson(partAckPayload, frame.payload);
        if (told !== undefined) this.#parts?.acknowledge(told.received, nowMs);
        if (this.#parts?.complete) this.#parts = undefined;
        return;
      }
      case "data":
        if (this.#inOrder(frame, nowMs)) this.#take(frame);
        return;
      case "fault":
        if (frame.sequence === 0) this.#attachRefused(frame);
        else if (this.#inOrder(frame, nowMs)) this.#finish(frame);
        return;
      case "end":
        if (this.#inOrder(frame, nowMs)) this.#finish(frame);
        return;
      case "accept":
      case "beat":
        return;
    }
  }

  /** The job's row in a beat of its machine; none means that the machine does not have the job any more. */
  beat(row: BeatRow | undefined, nowMs: number): void {
    if (this.#settled || !this.#accepted) return;
    if (row === undefined) {
      this.#fail(machineDisconnected("the machine's beat has no row for this job"));
      return;
    }
    this.#heardAtMs = nowMs;
    this.#row = row;
    const [, , , , lastSequence, credit] = row;
    if (lastSequence >= this.#nextSequence) this.#missing(lastSequence, nowMs);
    // It was told with a lease how much was taken.
    if (credit > this.#creditLimit) {
      this.#creditLimit = Math.max(this.#creditLimit, Math.min(credit, this.#takenBytes + this.#options.creditBytes));
    }
    // The machine knows of an older limit, so the message with the newer one was lost.
    if (credit > 0 && credit < this.#creditLimit) this.#options.wire.sendCredit(this.#takenBytes, this.#creditLimit);
  }

  /**
   * How much its client has taken, if the machine is to be told so with a lease. That gives credit only once a beat shows
   * it: machines of older builds do not read it.
   */
  tellTaken(): number | undefined {
    const taken = this.#clientTook();
    if (taken - this.#takenBytes < limits.takenStepBytes) return undefined;
    this.#takenBytes = taken;
    return taken;
  }

  /** This gateway's own connection is back: what was sent meanwhile is lost, in both directions. */
  reconnected(nowMs: number): void {
    if (this.#settled) return;
    if (!this.#accepted) {
      this.#wentOut = false;
      this.#resendAtMs = nowMs;
      return;
    }
    this.#parts?.repeat(nowMs);
    this.#attach(nowMs);
  }

  /**
   * The broker's word that nobody is on the machine's subject: final only for a job that was never accepted. A machine that
   * was there when the job went out, and is not when it goes out again, had the job when it died: that is no refusal, since
   * the job may be what it died of.
   */
  nobodyThere(nowMs: number): void {
    if (this.#settled || this.#accepted) return;
    const { wire, timing } = this.#options;
    if (this.#submissions === 1) this.#wentOut = false;
    this.#diedWithIt = this.#wentOut;
    if (wire.machineAwaited()) {
      this.#resendAtMs = nowMs + timing.parkRetryMs;
      return;
    }
    if (this.#submissions > 1) {
      this.#notReached();
      return;
    }
    this.#resendAtMs = nowMs + timing.retryAfterNobodyMs;
  }

  /** To be called as often as the shortest wait of a job asks for; where nothing can be due yet it costs next to nothing. */
  tick(nowMs: number, connection: { connected: boolean; sinceMs: number }): void {
    if (nowMs < this.#restsUntilMs && connection.connected && !this.#awaitsAnything()) return;
    if (this.#settled) return;
    const { beatIntervalMs, probeAfterMs } = this.#options.timing;
    this.#restsUntilMs = Math.min(nowMs + beatIntervalMs, Math.max(nowMs, this.#heardAtMs + probeAfterMs));
    const { timing, wire, listener, remainingMs } = this.#options;
    listener.onTick?.(nowMs, this.#row);
    if (this.#settled) return;
    if (nowMs - this.#startedAtMs > remainingMs + timing.lostAfterMs) {
      this.#cancel(
        new Fault("upstream_timeout", { message: `The request took longer than ${remainingMs} ms in all.` }),
      );
      return;
    }
    if (!this.#accepted && connection.connected) {
      this.#awaitAcceptance(nowMs, Math.max(this.#startedAtMs, connection.sinceMs));
      return;
    }
    if (connection.connected) this.#parts?.tick(nowMs);
    const { connected, sinceMs: connectionSinceMs } = connection;
    this.#giveCredit();
    if (connected) this.#awaitMissing(nowMs, connectionSinceMs);
    if (this.#settled) return;
    const verdict = judgeSilence({ nowMs, heardAtMs: this.#heardAtMs, connected, connectionSinceMs }, timing);
    if (verdict === "lost") {
      wire.machineNotReached();
      this.#cancel(machineDisconnected(`nothing was heard of the job for ${timing.lostAfterMs} ms`));
    } else if (verdict === "cut-off") {
      this.#fail(new Fault("backend_unavailable", { message: "The gateway lost its connection to the machines." }));
    } else if (verdict === "probe" && nowMs - this.#probedAtMs >= timing.parkRetryMs) {
      this.#probedAtMs = nowMs;
      wire.sendProbe();
    }
  }

  /**
   * Nobody wants the answer any more. A machine that was just given the job counts as having it, since one that begins at
   * once says nothing before its first word: to leave early is no way to have work done that nobody counts.
   */
  cancel(fault: Fault): void {
    if (this.#settled) return;
    if (!this.#accepted && this.#submissions === 1) this.#taken();
    this.#cancel(fault);
  }

  /** Whatever a machine says of a job means that it has it, also when the accept itself was lost. */
  #accept(frame: Frame, nowMs: number): void {
    if (this.#accepted) return;
    this.#accepted = true;
    if (frame.kind === "accept" && this.#parts !== undefined) {
      if (decodeJson(acceptPayload, frame.payload)?.state === "receiving") this.#parts.start(nowMs);
    }
    this.#taken();
  }

  #taken(): void {
    this.#options.wire.accepted();
    this.#options.listener.onAccept?.(this.#options.machine);
  }

  #take({ payload, outputTokens }: Frame): void {
    const { listener, wire } = this.#options;
    this.#receivedBytes += payload.byteLength;
    listener.onData(payload, outputTokens);
    if (!this.#said && (listener.hasSaid === undefined || listener.hasSaid())) {
      this.#said = true;
      wire.bodyTaken();
    }
    this.#giveCredit();
  }

  /** Whether it waits for what a tick sees first: a word of the machine, parts, frames again, or its client's reading. */
  #awaitsAnything(): boolean {
    if (!this.#accepted || this.#parts !== undefined || this.#missingSinceMs !== undefined) return true;
    return this.#isCreditDue(this.#receivedBytes);
  }

  #isCreditDue(takenBytes: number): boolean {
    const { creditBytes } = this.#options;
    return takenBytes + creditBytes - this.#creditLimit >= Math.min(creditBytes / 2, limits.creditStepBytes);
  }

  #clientTook(): number {
    return this.#receivedBytes - (this.#options.listener.backlogBytes?.() ?? 0);
  }

  /** Tells the machine how much the client has taken, a step of it at a time. */
  #giveCredit(): void {
    if (this.#settled || !this.#isCreditDue(this.#receivedBytes)) return;
    const { creditBytes, wire } = this.#options;
    const taken = this.#clientTook();
    if (!this.#isCreditDue(taken)) return;
    this.#takenBytes = taken;
    this.#creditLimit = taken + creditBytes;
    wire.sendCredit(taken, this.#creditLimit);
  }

  /** The machine has its whole time from when it could be asked. */
  #awaitAcceptance(nowMs: number, askedSinceMs: number): void {
    const { timing, acceptWithinMs, wire } = this.#options;
    if (nowMs - askedSinceMs > acceptWithinMs) {
      wire.sendCancel("gave_up");
      this.#notReached();
      return;
    }
    if (nowMs < this.#resendAtMs) return;
    this.#resendAtMs = nowMs + timing.acceptWaitMs * 2;
    this.submit();
  }

  #notReached(): void {
    this.#options.wire.machineNotReached();
    if (this.#diedWithIt) {
      this.#taken();
      this.#fail(machineDisconnected("the machine was gone before its first word"));
    } else this.#settle({ outcome: "not-taken", fault: machineOffline() });
  }

  /** Frames come once more after each attach, so that those that are here already are passed over. */
  #inOrder({ sequence }: Frame, nowMs: number): boolean {
    if (sequence > this.#nextSequence) this.#missing(sequence, nowMs);
    if (sequence !== this.#nextSequence) return false;
    this.#nextSequence += 1;
    if (this.#missingSinceMs !== undefined) {
      this.#missingSinceMs = this.#nextSequence > this.#sentSequence ? undefined : nowMs;
      this.#cameAgain += 1;
      if (this.#missingSinceMs === undefined) {
        this.#options.wire.gapFilled?.(this.#cameAgain);
        this.#cameAgain = 0;
      }
    }
    return true;
  }

  #missing(sentSequence: number, nowMs: number): void {
    this.#sentSequence = Math.max(this.#sentSequence, sentSequence);
    this.#missingSinceMs ??= nowMs;
    if (nowMs - this.#attachedAtMs >= this.#options.timing.parkRetryMs) this.#attach(nowMs);
  }

  #attach(nowMs: number): void {
    this.#attachedAtMs = nowMs;
    this.#options.wire.sendAttach(this.#nextSequence, this.#creditLimit);
  }

  #awaitMissing(nowMs: number, connectionSinceMs: number): void {
    if (this.#missingSinceMs === undefined) return;
    const { lostAfterMs, parkRetryMs } = this.#options.timing;
    if (nowMs - Math.max(this.#missingSinceMs, connectionSinceMs) > lostAfterMs) {
      this.#gap(`frame ${this.#nextSequence} did not come again`);
    } else if (nowMs - this.#attachedAtMs >= parkRetryMs) this.#attach(nowMs);
  }

  /** Outside the numbering a machine says only that it cannot send again what was asked for. */
  #attachRefused(frame: Frame): void {
    const told = decodeJson(faultPayload, frame.payload);
    if (told?.code === "stream_gap") this.#gap(`the machine has frame ${this.#nextSequence} no more`);
    else this.#fail(machineDisconnected("the machine does not know the job any more"));
  }

  #finish(frame: Frame): void {
    this.#options.wire.sendFinish();
    if (frame.kind === "fault") {
      const told = decodeJson(faultPayload, frame.payload);
      if (told?.usage) this.#options.listener.onUsage?.(told.usage);
      this.#fail(machineFault(told, this.#options.kind));
      return;
    }
    const end = readEnd(frame.payload);
    if (end?.usage) this.#options.listener.onUsage?.(end.usage);
    if (end !== undefined) this.#options.listener.onTimings?.(end.timings);
    if (end !== undefined) this.#settle({ outcome: "end", end });
    else this.#fail(machineDisconnected("the end frame could not be read"));
  }

  #gap(what: string): void {
    this.#cancel(
      new Fault("stream_gap", {
        message: "A part of the answer was lost on its way from the machine.",
        internal: what,
      }),
    );
  }

  #cancel(fault: Fault): void {
    const reason = fault.code === "client_closed" || fault.code === "slow_client" ? fault.code : "gave_up";
    this.#options.wire.sendCancel(reason);
    this.#fail(fault);
  }

  #fail(fault: Fault): void {
    this.#settle({ outcome: "fault", fault, said: this.#said });
  }

  #settle(outcome: JobOutcome): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#options.settle(outcome);
  }
}

function faultOfReject(told: RejectPayload | undefined): Fault {
  switch (told?.reason) {
    case "busy":
      return new Fault("server_is_overloaded", { message: told.message });
    case "draining":
      return machineOffline();
    case "unknown_model":
      return new Fault("agent_offline", { message: "The machine no longer offers this model.", param: "model" });
    case "unsupported":
    case "malformed":
    case undefined:
      return new Fault("upstream_error", {
        message: "The agent on the GPU machine does not understand this gateway.",
        internal: told?.message,
      });
  }
}
