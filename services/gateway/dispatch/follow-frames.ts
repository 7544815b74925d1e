import { Fault } from "#shared/fault/fault.ts";
import {
  acceptPayload,
  decodeJson,
  endPayload,
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
import type { Timing } from "#shared/protocol/timing.ts";
import { judgeSilence } from "./judge-silence.ts";
import { machineDisconnected, machineFault, machineOffline } from "./machine-fault.ts";
import type { PartSender } from "./send-parts.ts";

/** What the owner of a request is told while its job is under way. All calls come before the outcome. */
export interface JobListener {
  /** The machine has the job, which may have been offered to others before. */
  onAccept?(machine: string): void;
  /** A piece of the answer, exactly as the client is to be sent it; with it the answer has so many tokens. */
  onData(bytes: Uint8Array, outputTokens: number): void;
  /** What the machine says at the end that the job took, if it knows. */
  onUsage?(usage: Usage): void;
  /** Called at a steady pace for as long as the job is open, with the job's latest row of its machine's beats. */
  onTick?(nowMs: number, row: BeatRow | undefined): void;
}

export type JobOutcome =
  | { readonly outcome: "end"; readonly end: EndPayload }
  /** The machine did not take the job and nothing of it was begun: another machine may. */
  | { readonly outcome: "not-taken"; readonly fault: Fault }
  | { readonly outcome: "fault"; readonly fault: Fault };

interface FollowOptions {
  readonly machine: string;
  readonly kind: JobKind;
  /** Sends the body where it is too large for one message. */
  readonly parts: PartSender | undefined;
  readonly remainingMs: number;
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
  sendJob(): void;
  /** The body has arrived whole and is not needed here any more. */
  bodyTaken(): void;
  sendProbe(): void;
  sendCancel(reason: "client_closed" | "slow_client" | "gave_up"): void;
  sendFinish(): void;
  /** The machine is not there, by the broker's word or by its silence. */
  machineNotReached(): void;
  /** Whether the machine is still to be heard since the gateway's own connection came up: it may be just behind. */
  machineAwaited(): boolean;
}

/**
 * One job as its gateway sees it, from the first message to its one outcome. It checks that no frame is missing, and
 * notices when the machine falls silent. It parses nothing of the answer.
 */
export class FrameFollower {
  readonly #options: Omit<FollowOptions, "parts">;
  #parts: PartSender | undefined;
  readonly #startedAtMs: number;
  #heardAtMs: number;
  #accepted = false;
  #settled = false;
  #submissions = 0;
  #resendAtMs: number;
  #probedAtMs = 0;
  #nextSequence = 1;
  #row: BeatRow | undefined;

  constructor(options: FollowOptions) {
    const { parts, ...rest } = options;
    const { timing, nowMs } = rest;
    this.#options = rest;
    this.#parts = parts;
    this.#startedAtMs = nowMs;
    this.#heardAtMs = nowMs;
    this.#resendAtMs = nowMs + timing.acceptWaitMs;
  }

  submit(): void {
    this.#submissions += 1;
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
        if (this.#parts?.complete) this.#handOver();
        return;
      }
      case "data":
        if (this.#inOrder(frame)) this.#options.listener.onData(frame.payload, frame.outputTokens);
        return;
      case "end":
      case "fault":
        if (this.#inOrder(frame)) this.#finish(frame);
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
    const [, state, , , lastSequence] = row;
    const onlyTerminalMissing = state === "ended" && lastSequence === this.#nextSequence;
    if (lastSequence >= this.#nextSequence && !onlyTerminalMissing)
      this.#gap(`the beat tells of frame ${lastSequence}`);
  }

  /** The broker's word that nobody is on the machine's subject: final only for a job that was never accepted. */
  nobodyThere(nowMs: number): void {
    if (this.#settled || this.#accepted) return;
    const { wire, timing } = this.#options;
    if (wire.machineAwaited()) {
      this.#resendAtMs = nowMs + timing.parkRetryMs;
      return;
    }
    if (this.#submissions > 1) {
      wire.machineNotReached();
      this.#settle({ outcome: "not-taken", fault: machineOffline() });
      return;
    }
    this.#resendAtMs = nowMs + timing.retryAfterNobodyMs;
  }

  /** To be called as often as the shortest wait of a job asks for. */
  tick(nowMs: number, connection: { connected: boolean; sinceMs: number }): void {
    if (this.#settled) return;
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

  /** Nobody wants the answer any more. */
  cancel(fault: Fault): void {
    if (!this.#settled) this.#cancel(fault);
  }

  /** Whatever a machine says of a job means that it has it, also when the accept itself was lost. */
  #accept(frame: Frame, nowMs: number): void {
    if (this.#accepted) return;
    this.#accepted = true;
    if (frame.kind === "accept" && decodeJson(acceptPayload, frame.payload)?.state === "receiving") {
      this.#parts?.start(nowMs);
    }
    if (this.#parts === undefined) this.#handOver();
    this.#options.listener.onAccept?.(this.#options.machine);
  }

  /** The machine has the whole body, and this side need not keep it. */
  #handOver(): void {
    this.#parts = undefined;
    this.#options.wire.bodyTaken();
  }

  /** The machine has its whole time from when it could be asked. */
  #awaitAcceptance(nowMs: number, askedSinceMs: number): void {
    const { timing, acceptWithinMs, wire } = this.#options;
    if (nowMs - askedSinceMs > acceptWithinMs) {
      wire.sendCancel("gave_up");
      wire.machineNotReached();
      this.#settle({ outcome: "not-taken", fault: machineOffline() });
      return;
    }
    if (nowMs < this.#resendAtMs) return;
    this.#resendAtMs = nowMs + timing.acceptWaitMs * 2;
    this.submit();
  }

  #inOrder(frame: Frame): boolean {
    if (frame.sequence === this.#nextSequence) {
      this.#nextSequence += 1;
      return true;
    }
    if (frame.sequence > this.#nextSequence) this.#gap(`frame ${frame.sequence} came`);
    return false;
  }

  #finish(frame: Frame): void {
    this.#options.wire.sendFinish();
    if (frame.kind === "fault") {
      const told = decodeJson(faultPayload, frame.payload);
      if (told?.usage) this.#options.listener.onUsage?.(told.usage);
      this.#settle({ outcome: "fault", fault: machineFault(told, this.#options.kind) });
      return;
    }
    const end = decodeJson(endPayload, frame.payload);
    if (end?.usage) this.#options.listener.onUsage?.(end.usage);
    if (end !== undefined) this.#settle({ outcome: "end", end });
    else this.#settle({ outcome: "fault", fault: machineDisconnected("the end frame could not be read") });
  }

  #gap(what: string): void {
    this.#cancel(
      new Fault("stream_gap", {
        message: "A part of the answer was lost on its way from the machine.",
        internal: `${what} while frame ${this.#nextSequence} was next`,
      }),
    );
  }

  #cancel(fault: Fault): void {
    const reason = fault.code === "client_closed" || fault.code === "slow_client" ? fault.code : "gave_up";
    this.#options.wire.sendCancel(reason);
    this.#fail(fault);
  }

  #fail(fault: Fault): void {
    this.#settle({ outcome: "fault", fault });
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
