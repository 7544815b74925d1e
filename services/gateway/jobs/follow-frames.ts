import type { PartSender } from "./send-parts.ts";
import { Fault } from "#shared/fault/fault.ts";
import {
  acceptPayload,
  decodeJson,
  endPayload,
  faultPayload,
  partAckPayload,
  rejectPayload,
  type BeatRow,
  type LoadNews,
  type JobState,
  type ResumedAnswer,
} from "#shared/protocol/frame-payload.ts";
import { tokenCountMax } from "#shared/protocol/answer-events.ts";
import type { Frame } from "#shared/protocol/frame.ts";
import type { JobKind } from "#shared/protocol/job.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { JobListener, JobOutcome, JobWire } from "./job-listener.ts";
import {
  answerNotFound,
  leftTooLong,
  machineBrokeRules,
  machineDisconnected,
  machineFault,
  machineOffline,
  rejectFault,
  resumedElsewhere,
} from "./machine-fault.ts";

interface FollowOptions {
  readonly machine: string;
  readonly kind: JobKind;
  readonly remainingMs: number;
  /** Bytes of records that the machine may send ahead of what its client has read. */
  readonly creditBytes: number;
  /** Time limit for the machine's first frame. Afterwards the job counts as not taken. */
  readonly acceptWithinMs: number;
  /** Names the request by which a client resumes an answer here: the job was given to its machine before. */
  readonly resumes?: string | undefined;
  /** True if the machine may have been granted more by another gateway. */
  readonly isResumable?: boolean | undefined;
  readonly listener: JobListener;
  readonly wire: JobWire;
  readonly timing: Timing;
  readonly nowMs: number;
  readonly settle: (outcome: JobOutcome) => void;
}

/** The job was published, and the machine has not accepted it. */
interface Offered {
  readonly name: "offered";
  submissions: number;
  /** True if the first publish got no 503 (no responders). A reconnect resets it. */
  wentOut: boolean;
  /** True if a retry got a 503 although the first publish got none: the machine had the job when it died. */
  diedWithIt: boolean;
  resendAtMs: number;
}

/** The course of a job: offered until the machine has it, then running, then settled with its one outcome. */
type Phase = Offered | typeof running | typeof settled;
const running = { name: "running" } as const;
const settled = { name: "settled" } as const;

/**
 * Follows one job at its gateway, from the first message to its one outcome. It detects missing frames and requests
 * them again. It ends the job when they do not arrive. It detects a silent machine. It does not parse the answer:
 * `AnswerCourse` does.
 */
export class FrameFollower {
  readonly #options: FollowOptions;
  /** Undefined once the machine has the whole body, because the sender holds that body in memory. */
  #parts: PartSender | undefined;
  readonly #startedAtMs: number;
  #heardAtMs: number;
  #phase: Phase;
  /** `tick` returns at once until this time, unless the job awaits something or the connection is down. */
  #restsUntilMs = 0;
  #probedAtMs = 0;
  #nextSequence = 1;
  /** The highest sequence number that the machine is known to have sent. */
  #sentSequence = 0;
  /** The time at which a gap was noticed, or the latest frame that fills it arrived. Undefined without a gap. */
  #missingSinceMs: number | undefined;
  #attachedAtMs = -Infinity;
  #cameAgain = 0;
  #receivedBytes = 0;
  /** True if a part of the answer was passed on, so that no other machine can give it. */
  #said = false;
  /** True if the client once read too slowly for the machine to go on. */
  #heldBack = false;
  #takenBytes = 0;
  #creditLimit: number;
  /**
   * The highest offset ever granted to the machine, by credit or by a lease. The machine may send nothing beyond it.
   */
  #grantedBytes: number;
  #row: BeatRow | undefined;

  /** `parts` sends a body that is too large for one message. */
  constructor(options: FollowOptions, parts?: PartSender) {
    const { timing, nowMs } = options;
    this.#options = options;
    this.#parts = parts;
    this.#startedAtMs = nowMs;
    this.#heardAtMs = nowMs;
    const resendAtMs = nowMs + timing.acceptWaitMs;
    this.#phase = { name: "offered", submissions: 0, wentOut: true, diedWithIt: false, resendAtMs };
    this.#creditLimit = options.creditBytes;
    this.#grantedBytes = Math.max(options.creditBytes, options.isResumable ? limits.resumableBytes : 0);
  }

  /** True once the machine has taken the job, so that it is of this job's key. */
  get isRunning(): boolean {
    return this.#phase.name === "running";
  }

  /** Read anew after each call that may settle the job. */
  get #isSettled(): boolean {
    return this.#phase.name === "settled";
  }

  submit(): void {
    if (this.#phase.name === "offered") this.#phase.submissions += 1;
    this.#options.wire.sendJob();
  }

  frame(frame: Frame, nowMs: number): void {
    if (this.#isSettled) return;
    this.#heardAtMs = nowMs;
    if (this.#isEarlier(frame)) return;
    if (frame.kind !== "reject") this.#accept(frame, nowMs);
    switch (frame.kind) {
      case "reject": {
        const payload = decodeJson(rejectPayload, frame.payload);
        if (this.#phase.name === "offered") this.#settle({ outcome: "not-taken", fault: rejectFault(payload) });
        return;
      }
      case "part-ack": {
        const payload = decodeJson(partAckPayload, frame.payload);
        if (payload !== undefined) this.#parts?.acknowledge(payload.received, nowMs);
        if (this.#parts?.complete) this.#parts = undefined;
        return;
      }
      case "data":
        if (this.#inOrder(frame, nowMs)) this.#take(frame);
        return;
      case "fault":
      case "end":
        if (frame.kind === "fault" && frame.sequence === 0) this.#attachRefused(frame);
        else if (this.#inOrder(frame, nowMs)) this.#finishOnceSure(frame);
        return;
      case "accept":
      case "beat":
        return;
    }
  }

  /** True for a frame that was sent to an earlier request of the same client, and was still under way. */
  #isEarlier({ kind, sequence, payload }: Frame): boolean {
    const { resumes } = this.#options;
    if (resumes === undefined) return false;
    if (sequence > 0) return this.#phase.name === "offered";
    const fault = kind === "fault" ? decodeJson(faultPayload, payload) : undefined;
    return fault?.code === "job_moved" && fault.movedFrom !== resumes;
  }

  /** Takes the job's row from a beat of its machine. Undefined means that the machine no longer has the job. */
  beat(row: BeatRow | undefined, nowMs: number, load?: LoadNews): void {
    if (this.#phase.name !== "running") return;
    if (row === undefined) {
      // The machine tells whether the job moved to another gateway.
      if (this.#options.isResumable) return this.#attach(nowMs);
      this.#fail(machineDisconnected("the machine's beat has no row for this job"));
      return;
    }
    this.#heardAtMs = nowMs;
    this.#row = row;
    this.#options.listener.onBeat?.(row, load);
    const [, , , tokens, lastSequence, credit] = row;
    // An answer in one piece comes at its end; a beat shows before that it has begun.
    if (tokens > 0 && this.#isGathered) this.#options.wire.answering();
    if (lastSequence >= this.#nextSequence) this.#missing(lastSequence, nowMs);
    // The machine learned from a lease how much the client has read.
    this.#creditLimit = Math.max(this.#creditLimit, Math.min(credit, this.#takenBytes + this.#options.creditBytes));
    // The machine reports an older limit, so the message with the newer limit was lost.
    if (credit > 0 && credit < this.#creditLimit) this.#options.wire.sendCredit(this.#takenBytes, this.#creditLimit);
  }

  /**
   * Returns the bytes that the client has read, if the next lease should report them to the machine. A lease grants
   * credit only once a beat shows that credit: agents of older builds ignore it.
   */
  tellTaken(): number | undefined {
    const taken = this.#clientTook();
    if (taken - this.#takenBytes < limits.takenStepBytes) return undefined;
    this.#grant(taken);
    return taken;
  }

  /**
   * Called when this gateway's own connection is back. Messages sent while it was down are lost, in both directions.
   */
  reconnected(nowMs: number): void {
    if (this.#phase.name === "offered") {
      this.#phase.wentOut = false;
      this.#phase.resendAtMs = nowMs;
    } else if (this.#phase.name === "running") {
      this.#parts?.repeat(nowMs);
      this.#attach(nowMs);
    }
  }

  /**
   * Handles the broker's 503 (no responders) for the machine's subject. It is final only for a job that was never
   * accepted. A machine that got the first publish and is gone at the retry had the job when it died. That is no
   * refusal, since the job may have killed the machine.
   */
  noResponders(nowMs: number): void {
    const phase = this.#phase;
    if (phase.name !== "offered") return;
    const { wire, timing } = this.#options;
    if (phase.submissions === 1) phase.wentOut = false;
    phase.diedWithIt = phase.wentOut;
    if (wire.machineAwaited()) phase.resendAtMs = nowMs + timing.parkRetryMs;
    else if (phase.submissions > 1) this.#notReached(phase);
    else phase.resendAtMs = nowMs + timing.retryAfterNobodyMs;
  }

  /**
   * Checks the timeouts of the job. Call it as often as the job's shortest timeout requires. It returns at once while
   * no timeout can expire.
   */
  tick(nowMs: number, connection: { connected: boolean; sinceMs: number }): void {
    if (nowMs < this.#restsUntilMs && connection.connected && !this.#awaitsAnything()) return;
    if (this.#isSettled) return;
    const { timing, listener, remainingMs } = this.#options;
    const silentAtMs = Math.max(nowMs, this.#heardAtMs + timing.probeAfterMs);
    this.#restsUntilMs = Math.min(nowMs + timing.beatIntervalMs, silentAtMs);
    listener.onTick?.(nowMs, this.#row);
    if (this.#isSettled) return;
    if (nowMs - this.#startedAtMs > remainingMs + timing.lostAfterMs) {
      this.#cancel(
        new Fault("upstream_timeout", { message: `The request took longer than ${remainingMs} ms in all.` }),
      );
      return;
    }
    const { connected, sinceMs } = connection;
    if (this.#phase.name === "offered" && connected) {
      this.#awaitAcceptance(this.#phase, nowMs, Math.max(this.#startedAtMs, sinceMs));
      return;
    }
    if (connected) this.#parts?.tick(nowMs);
    this.#giveCredit();
    if (connected) this.#awaitMissing(nowMs, sinceMs);
    if (this.#isSettled) return;
    if (connected) this.#judgeSilence(nowMs, nowMs - Math.max(this.#heardAtMs, sinceMs));
    else if (nowMs - sinceMs > timing.cutOffAfterMs) {
      // The client may be at another gateway by now, which counts from where the machine was told.
      if (this.#options.isResumable && listener.hasLeft?.()) return void this.moved(this.#options.wire.saidTokens);
      this.#fail(new Fault("backend_unavailable", { message: "The gateway lost its connection to the broker." }));
    }
  }

  /**
   * Silence counts only while the gateway's own connection is up, and starts anew when the connection comes back: a
   * machine is not blamed for messages that the gateway could not receive.
   */
  #judgeSilence(nowMs: number, silentMs: number): void {
    const { timing, wire } = this.#options;
    if (silentMs > timing.lostAfterMs) {
      wire.machineNotReached();
      this.#cancel(machineDisconnected(`nothing was heard of the job for ${timing.lostAfterMs} ms`));
    } else if (silentMs > timing.probeAfterMs && nowMs - this.#probedAtMs >= timing.parkRetryMs) {
      this.#probedAtMs = nowMs;
      wire.sendProbe();
    }
  }

  /**
   * Cancels the job, because its answer is no longer wanted. A job that was published once counts as accepted: a
   * machine that begins at once sends nothing before the first piece of the answer. Disconnecting early therefore does
   * not avoid usage accounting.
   */
  cancel(fault: Fault): void {
    if (this.#isSettled) return;
    if (this.#phase.name === "offered" && this.#phase.submissions === 1) this.#taken();
    this.#cancel(fault);
  }

  /** Ends the follower and leaves the job to whoever resumes its answer. */
  leave(fault: Fault): void {
    this.#fail(fault);
  }

  /** Ends the follower, because the client resumes the answer by another request. Returns the tokens counted up to here. */
  moved(countsTo?: number): number | undefined {
    const countedTokens = this.#options.listener.onMoved?.(countsTo);
    this.#fail(resumedElsewhere());
    return countedTokens;
  }

  /**
   * Marks the job as accepted. Any frame except a reject means that the machine has the job, even if its accept was
   * lost.
   */
  #accept(frame: Frame, nowMs: number): void {
    if (this.#phase.name !== "offered") return;
    this.#phase = running;
    const { state, resumed } = (frame.kind === "accept" && decodeJson(acceptPayload, frame.payload)) || {};
    if (state === "receiving") this.#parts?.start(nowMs);
    this.#taken(state, resumed);
  }

  #taken(state?: JobState, resumed?: ResumedAnswer): void {
    this.#options.wire.accepted();
    this.#options.listener.onAccept?.(this.#options.machine, state, resumed);
  }

  #take({ payload, outputTokens }: Frame): void {
    const { listener, wire, creditBytes } = this.#options;
    if (this.#receivedBytes === 0) wire.answering();
    this.#receivedBytes += payload.byteLength;
    try {
      if (this.#receivedBytes > this.#grantedBytes) {
        throw machineBrokeRules(
          `it sent ${this.#receivedBytes} bytes and was granted ${this.#grantedBytes} (creditBytes ${creditBytes})`,
        );
      }
      if (outputTokens > tokenCountMax)
        throw machineBrokeRules(`it told of ${outputTokens} tokens, and an answer has ${tokenCountMax} at most`);
      listener.onData(payload, outputTokens);
    } catch (thrown) {
      this.#cancel(Fault.from(thrown));
      return;
    }
    if (!this.#said && (listener.hasSaid?.() ?? true)) {
      this.#said = true;
      wire.bodyTaken();
    }
    if (this.#receivedBytes > limits.resumableBytes && listener.hasLeft?.()) this.cancel(leftTooLong());
    else if (!this.#isGathered) this.#giveCredit();
  }

  /**
   * True if the gateway collects the answer: no client's reading holds it back. Its credit is sent with ticks, since
   * credit after every frame would limit nothing.
   */
  get #isGathered(): boolean {
    return this.#options.listener.backlogBytes === undefined;
  }

  /**
   * True if the job waits for something that a tick notices first: the machine's first frame, part-acks, resent frames
   * or its client's reading.
   */
  #awaitsAnything(): boolean {
    if (this.#phase.name === "offered" || this.#parts !== undefined || this.#missingSinceMs !== undefined) return true;
    return this.#isCreditDue(this.#receivedBytes);
  }

  #isCreditDue(takenBytes: number): boolean {
    const { creditBytes } = this.#options;
    return takenBytes + creditBytes - this.#creditLimit >= Math.min(creditBytes / 2, limits.creditStepBytes);
  }

  /** Everything that came counts as read while the client has few rendered bytes unread. */
  #clientTook(): number {
    const backlogBytes = this.#options.listener.backlogBytes?.() ?? 0;
    return backlogBytes <= limits.unreadBytesMax ? this.#receivedBytes : this.#takenBytes;
  }

  /** Sends credit once the client has read another step of the answer. */
  #giveCredit(): void {
    if (this.#isSettled || !this.#isCreditDue(this.#receivedBytes)) return;
    const { creditBytes, wire } = this.#options;
    const taken = this.#clientTook();
    if (!this.#isCreditDue(taken)) {
      this.#heldBack = true;
      return;
    }
    this.#grant(taken);
    this.#creditLimit = taken + creditBytes;
    wire.sendCredit(taken, this.#creditLimit);
  }

  #grant(taken: number): void {
    this.#takenBytes = taken;
    this.#grantedBytes = Math.max(this.#grantedBytes, taken + this.#options.creditBytes);
  }

  /**
   * Resends an unaccepted job, and gives up after `acceptWithinMs`. That time starts when the machine could be reached.
   */
  #awaitAcceptance(offered: Offered, nowMs: number, askedSinceMs: number): void {
    const { timing, acceptWithinMs, wire } = this.#options;
    if (nowMs - askedSinceMs > acceptWithinMs) {
      // The job of an answer that is resumed may still run for another attempt to resume it.
      if (!this.#options.resumes) wire.sendCancel("gave_up");
      this.#notReached(offered);
      return;
    }
    if (nowMs < offered.resendAtMs) return;
    offered.resendAtMs = nowMs + timing.acceptWaitMs * 2;
    this.submit();
  }

  #notReached({ diedWithIt }: Offered): void {
    this.#options.wire.machineNotReached();
    if (diedWithIt) this.#fail(machineOffline("machine"));
    else this.#settle({ outcome: "not-taken", fault: machineOffline() });
  }

  /**
   * True if the frame is the next in sequence. Each attach makes the machine resend frames, so frames already received
   * are skipped.
   */
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

  /**
   * Handles a fault frame with sequence 0. A machine sends it when it cannot resend the frames that an attach asked for, or
   * when the client resumes the answer at another gateway.
   */
  #attachRefused(frame: Frame): void {
    const { code, countedTokens } = decodeJson(faultPayload, frame.payload) ?? {};
    if (code === "job_moved") this.moved(countedTokens);
    else if (this.#options.resumes) this.#fail(answerNotFound());
    else if (code === "stream_gap") this.#gap(`the machine has frame ${this.#nextSequence} no more`);
    else this.#fail(machineDisconnected("the machine does not know the job any more"));
  }

  /** A gateway that slept may have the end of an answer that moved before: the message of the move comes behind it. */
  #finishOnceSure(frame: Frame): void {
    const sure = this.#options.isResumable ? this.#options.wire.caughtUp?.() : undefined;
    if (sure === undefined) this.#finish(frame);
    else void sure.then(() => this.#isSettled || this.#finish(frame));
  }

  #finish(frame: Frame): void {
    const { kind, listener, wire } = this.#options;
    wire.sendFinish();
    if (frame.kind === "fault") {
      const payload = decodeJson(faultPayload, frame.payload);
      if (payload?.usage) listener.onUsage?.(payload.usage);
      this.#fail(machineFault(payload, kind));
      return;
    }
    const end = decodeJson(endPayload, frame.payload);
    if (end === undefined) {
      this.#fail(machineDisconnected("the end frame could not be read"));
      return;
    }
    if (end.usage) listener.onUsage?.(end.usage);
    listener.onTimings?.(end.timings);
    try {
      listener.onEnd?.(end.usage?.completionTokens ?? 0);
    } catch (thrown) {
      this.#fail(Fault.from(thrown));
      return;
    }
    this.#settle({ outcome: "end", end, receivedBytes: this.#receivedBytes, heldBack: this.#heldBack });
  }

  #gap(what: string): void {
    this.#cancel(
      new Fault("stream_gap", {
        message: "Part of the answer was lost between the machine and the gateway.",
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
    if (this.#isSettled) return;
    this.#phase = settled;
    this.#options.settle(outcome);
  }
}
