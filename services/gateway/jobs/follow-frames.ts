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
} from "#shared/protocol/frame-payload.ts";
import { tokenCountMax } from "#shared/protocol/answer-events.ts";
import type { Frame } from "#shared/protocol/frame.ts";
import type { JobKind } from "#shared/protocol/job.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import { Acceptance } from "./acceptance.ts";
import { Credit } from "./credit.ts";
import { FrameOrder } from "./frame-order.ts";
import type { FrameMeter, JobMessage, JobOutcome, JobOwner } from "./job-events.ts";
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
  readonly kind: JobKind;
  readonly remainingMs: number;
  /** Bytes of records that the machine may send ahead of what its client has read. */
  readonly creditBytes: number;
  /** Time limit for the machine's first frame. Afterwards the job counts as not taken. */
  readonly acceptWithinMs: number;
  /** Names the request by which a client resumes an answer here: the job was given to its machine before. */
  readonly resumes: string | undefined;
  /** True if the answer may be resumed, so that the machine may have been granted more by another gateway. */
  readonly isResumable: boolean;
  readonly owner: JobOwner;
  readonly send: (message: JobMessage) => void;
  /** Called when a part of the answer was passed on: no other machine is asked for the whole answer from then on. */
  readonly said: () => void;
  /** Called when the machine is unreachable: the broker reported no responders, or the machine stayed silent. */
  readonly notReached: () => void;
  readonly meter: FrameMeter | undefined;
  readonly timing: Timing;
  readonly nowMs: number;
  readonly settle: (outcome: JobOutcome) => void;
}

/**
 * Follows one job at its gateway, from the first message to its one outcome. It detects missing frames and requests
 * them again. It ends the job when they do not arrive. It detects a silent machine. It does not parse the answer: its
 * owner does.
 */
export class FrameFollower {
  readonly #options: FollowOptions;
  /** Undefined once the machine has the whole body, because the sender holds that body in memory. */
  #parts: PartSender | undefined;
  readonly #credit: Credit;
  readonly #order: FrameOrder;
  readonly #startedAtMs: number;
  #heardAtMs: number;
  /** The course of a job: offered until the machine has it, then running, then settled with its one outcome. */
  #phase: Acceptance | "running" | "settled";
  /** `tick` returns at once until this time, unless the job awaits something or the connection is down. */
  #restsUntilMs = 0;
  #probedAtMs = 0;
  #said = false;
  #row: BeatRow | undefined;
  /** The tokens up to which the machine was told that a resumable answer is counted here. */
  #toldTokens: number | undefined;

  /** `parts` sends a body that is too large for one message. */
  constructor(options: FollowOptions, parts?: PartSender) {
    const { timing, nowMs, creditBytes, isResumable, meter, send } = options;
    this.#options = options;
    this.#parts = parts;
    this.#startedAtMs = nowMs;
    this.#heardAtMs = nowMs;
    this.#phase = new Acceptance({ timing, withinMs: options.acceptWithinMs, nowMs });
    this.#credit = new Credit(creditBytes, isResumable ? limits.resumableBytes : 0);
    this.#order = new FrameOrder({
      timing,
      ask: (from) => {
        meter?.replayAsked();
        send({ kind: "attach", from, credit: this.#credit.limit });
      },
      filled: (frames) => meter?.gapFilled(frames),
    });
  }

  /** True once the machine has taken the job, so that it is of this job's key. */
  get isRunning(): boolean {
    return this.#phase === "running";
  }

  /** Read anew after each call that may settle the job. */
  get #isSettled(): boolean {
    return this.#phase === "settled";
  }

  /** The job while its machine has not accepted it. */
  get #offered(): Acceptance | undefined {
    return this.#phase instanceof Acceptance ? this.#phase : undefined;
  }

  submit(): void {
    this.#offered?.submitted();
    this.#options.send({ kind: "job" });
  }

  frame(frame: Frame, nowMs: number): void {
    if (this.#isSettled) return;
    this.#heardAtMs = nowMs;
    if (this.#isEarlier(frame)) return;
    if (frame.kind !== "reject") this.#accept(frame, nowMs);
    switch (frame.kind) {
      case "reject": {
        const payload = decodeJson(rejectPayload, frame.payload);
        if (this.#offered !== undefined) this.#fail(rejectFault(payload), { taken: false });
        return;
      }
      case "part-ack": {
        const payload = decodeJson(partAckPayload, frame.payload);
        if (payload !== undefined) this.#parts?.acknowledge(payload.received, nowMs);
        if (this.#parts?.complete) this.#parts = undefined;
        return;
      }
      case "data":
        if (this.#order.take(frame.sequence, nowMs)) this.#take(frame);
        return;
      case "fault":
      case "end":
        if (frame.kind === "fault" && frame.sequence === 0) this.#attachRefused(frame);
        else if (this.#order.take(frame.sequence, nowMs)) this.#finish(frame);
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
    if (sequence > 0) return this.#offered !== undefined;
    const fault = kind === "fault" ? decodeJson(faultPayload, payload) : undefined;
    return fault?.code === "job_moved" && fault.movedFrom !== resumes;
  }

  /** Takes the job's row from a beat of its machine. Undefined means that the machine no longer has the job. */
  beat(row: BeatRow | undefined, nowMs: number, load?: LoadNews): void {
    if (this.#phase !== "running") return;
    if (row === undefined) {
      // The machine tells whether the job moved to another gateway.
      if (this.#options.isResumable) this.#order.ask(nowMs);
      else this.#fail(machineDisconnected("the machine's beat has no row for this job"));
      return;
    }
    this.#heardAtMs = nowMs;
    this.#row = row;
    const { owner, send } = this.#options;
    owner.on({ kind: "beat", row, load });
    const [, , , tokens, lastSequence, credit] = row;
    // An answer in one piece comes at its end; a beat shows before that it has begun.
    if (tokens > 0 && this.#isGathered) owner.on({ kind: "begun" });
    this.#order.sent(lastSequence, nowMs);
    const lost = this.#credit.known(credit);
    if (lost !== undefined) send({ kind: "credit", ...lost });
  }

  /** Returns the bytes that the client has read, if the next lease should report them to the machine. */
  tellTaken(): number | undefined {
    return this.#credit.forLease(this.#unreadBytes);
  }

  /** Returns the tokens up to which a resumable answer is counted here, if they are more than at the last call. */
  tellCounted(): number | undefined {
    const tokens = this.#options.isResumable ? this.#options.owner.countTokens() : undefined;
    if (tokens === this.#toldTokens) return undefined;
    this.#toldTokens = tokens;
    return tokens;
  }

  /**
   * Called when this gateway's own connection is back. Messages sent while it was down are lost, in both directions.
   */
  reconnected(nowMs: number): void {
    this.#offered?.reconnected(nowMs);
    if (this.#phase === "running") {
      this.#parts?.repeat(nowMs);
      this.#order.ask(nowMs);
    }
  }

  /** Handles the broker's 503 (no responders) for the machine's subject, which is final only for a job that was never accepted. */
  noResponders(nowMs: number, machine: { readonly isAwaited: boolean }): void {
    if (this.#offered?.isNobodyThere(nowMs, machine)) this.#notReached(this.#offered);
  }

  /**
   * Checks the timeouts of the job. Call it as often as the job's shortest timeout requires. It returns at once while
   * no timeout can expire.
   */
  tick(nowMs: number, { connected, sinceMs }: { connected: boolean; sinceMs: number }): void {
    if (nowMs < this.#restsUntilMs && connected && !this.#awaitsAnything()) return;
    if (this.#isSettled) return;
    const { timing, owner, remainingMs } = this.#options;
    const silentAtMs = Math.max(nowMs, this.#heardAtMs + timing.probeAfterMs);
    this.#restsUntilMs = Math.min(nowMs + timing.beatIntervalMs, silentAtMs);
    owner.on({ kind: "tick", nowMs, row: this.#row });
    if (this.#isSettled) return;
    if (nowMs - this.#startedAtMs > remainingMs + timing.lostAfterMs) {
      this.#cancel(
        new Fault("upstream_timeout", { message: `The request took longer than ${remainingMs} ms in all.` }),
      );
      return;
    }
    if (this.#offered !== undefined && connected) {
      return this.#awaitAcceptance(this.#offered, nowMs, Math.max(this.#startedAtMs, sinceMs));
    }
    this.#giveCredit();
    if (!connected) return this.#judgeCutOff(nowMs - sinceMs);
    this.#parts?.tick(nowMs);
    if (this.#order.isLost(nowMs, sinceMs)) this.#gap(`frame ${this.#order.next} did not come again`);
    if (!this.#isSettled) this.#judgeSilence(nowMs, nowMs - Math.max(this.#heardAtMs, sinceMs));
  }

  /** Ends the job of a gateway that was cut off for too long. */
  #judgeCutOff(cutOffMs: number): void {
    const { timing, owner, isResumable } = this.#options;
    if (cutOffMs <= timing.cutOffAfterMs) return;
    // The client may be at another gateway by now, which counts from where the machine was told.
    if (isResumable && owner.hasLeft()) this.moved(this.#toldTokens);
    else this.#fail(new Fault("backend_unavailable", { message: "The gateway lost its connection to the broker." }));
  }

  /**
   * Silence counts only while the gateway's own connection is up, and starts anew when the connection comes back: a
   * machine is not blamed for messages that the gateway could not receive.
   */
  #judgeSilence(nowMs: number, silentMs: number): void {
    const { timing, send, notReached } = this.#options;
    if (silentMs > timing.lostAfterMs) {
      notReached();
      this.#cancel(machineDisconnected(`nothing was heard of the job for ${timing.lostAfterMs} ms`));
    } else if (silentMs > timing.probeAfterMs && nowMs - this.#probedAtMs >= timing.parkRetryMs) {
      this.#probedAtMs = nowMs;
      send({ kind: "probe" });
    }
  }

  /**
   * Cancels the job, because its answer is no longer wanted. A job that was published once counts as accepted: a
   * machine that begins at once sends nothing before the first piece of the answer. Disconnecting early therefore does
   * not avoid usage accounting.
   */
  cancel(fault: Fault): void {
    if (this.#isSettled) return;
    if (this.#offered?.mayHaveBegun) this.#options.owner.on({ kind: "accepted" });
    this.#cancel(fault);
  }

  /** Ends the follower and leaves the job to whoever resumes its answer. */
  leave(fault: Fault): void {
    this.#fail(fault);
  }

  /** Ends the follower, because the client resumes the answer by another request. Returns the tokens counted up to here. */
  moved(countedTokens = this.#options.owner.countTokens()): number {
    if (!this.#isSettled) this.#options.owner.on({ kind: "moved", countedTokens });
    this.#fail(resumedElsewhere());
    return countedTokens;
  }

  /**
   * Marks the job as accepted. Any frame except a reject means that the machine has the job, even if its accept was
   * lost.
   */
  #accept(frame: Frame, nowMs: number): void {
    if (this.#offered === undefined) return;
    this.#phase = "running";
    const { state, resumed } = (frame.kind === "accept" && decodeJson(acceptPayload, frame.payload)) || {};
    if (state === "receiving") this.#parts?.start(nowMs);
    this.#options.owner.on({ kind: "accepted", state, resumed });
  }

  #take({ payload, outputTokens }: Frame): void {
    const { owner } = this.#options;
    if (this.#credit.receivedBytes === 0) owner.on({ kind: "begun" });
    try {
      this.#credit.received(payload.byteLength);
      if (outputTokens > tokenCountMax)
        throw machineBrokeRules(`it told of ${outputTokens} tokens, and an answer has ${tokenCountMax} at most`);
      owner.on({ kind: "data", payload, outputTokens });
    } catch (thrown) {
      this.#cancel(Fault.from(thrown));
      return;
    }
    if (!this.#said && owner.hasSaid()) {
      this.#said = true;
      this.#options.said();
    }
    if (this.#credit.receivedBytes > limits.resumableBytes && owner.hasLeft()) this.cancel(leftTooLong());
    else if (!this.#isGathered) this.#giveCredit();
  }

  /**
   * True if the gateway collects the answer: no client's reading holds it back. Its credit is sent with ticks, since
   * credit after every frame would limit nothing.
   */
  get #isGathered(): boolean {
    return this.#options.owner.unreadBytes() === undefined;
  }

  get #unreadBytes(): number {
    return this.#options.owner.unreadBytes() ?? 0;
  }

  /**
   * True if the job waits for something that a tick notices first: the machine's first frame, part-acks, resent frames
   * or its client's reading.
   */
  #awaitsAnything(): boolean {
    return this.#offered !== undefined || this.#parts !== undefined || this.#order.hasGap || this.#credit.isDue;
  }

  /** Sends credit once the client has read another step of the answer. */
  #giveCredit(): void {
    if (this.#isSettled) return;
    const granted = this.#credit.next(this.#unreadBytes);
    if (granted !== undefined) this.#options.send({ kind: "credit", ...granted });
  }

  #awaitAcceptance(offered: Acceptance, nowMs: number, askedSinceMs: number): void {
    const due = offered.due(nowMs, askedSinceMs);
    if (due === "send again") this.submit();
    if (due !== "give up") return;
    // The job of an answer that is resumed may still run for another attempt to resume it.
    if (this.#options.resumes === undefined) this.#options.send({ kind: "cancel", reason: "gave_up" });
    this.#notReached(offered);
  }

  #notReached({ diedWithIt }: Acceptance): void {
    this.#options.notReached();
    this.#fail(machineOffline(diedWithIt ? "machine" : undefined), { taken: diedWithIt });
  }

  /**
   * Handles a fault frame with sequence 0. A machine sends it when it cannot resend the frames that an attach asked for, or
   * when the client resumes the answer at another gateway.
   */
  #attachRefused(frame: Frame): void {
    const { code, countedTokens } = decodeJson(faultPayload, frame.payload) ?? {};
    if (code === "job_moved") this.moved(countedTokens);
    else if (this.#options.resumes !== undefined) this.#fail(answerNotFound());
    else if (code === "stream_gap") this.#gap(`the machine has frame ${this.#order.next} no more`);
    else this.#fail(machineDisconnected("the machine does not know the job any more"));
  }

  #finish(frame: Frame): void {
    const { kind, owner, send } = this.#options;
    send({ kind: "finish" });
    if (frame.kind === "fault") {
      const payload = decodeJson(faultPayload, frame.payload);
      if (payload?.usage) owner.on({ kind: "usage", usage: payload.usage });
      this.#fail(machineFault(payload, kind));
      return;
    }
    const end = decodeJson(endPayload, frame.payload);
    if (end === undefined) {
      this.#fail(machineDisconnected("the end frame could not be read"));
      return;
    }
    if (end.usage) owner.on({ kind: "usage", usage: end.usage });
    const { receivedBytes, heldBack } = this.#credit;
    try {
      this.#settle({ kind: "end", end, receivedBytes, heldBack });
    } catch (thrown) {
      this.#fail(Fault.from(thrown));
    }
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
    this.#options.send({ kind: "cancel", reason });
    this.#fail(fault);
  }

  #fail(fault: Fault, { taken } = { taken: true }): void {
    this.#settle({ kind: "fault", fault, taken });
  }

  /** Tells the owner the outcome. The owner may refuse an end, or leave the job then. */
  #settle(outcome: JobOutcome): void {
    if (this.#isSettled) return;
    if (outcome.kind === "end") this.#options.owner.on(outcome);
    if (this.#isSettled) return;
    this.#phase = "settled";
    if (outcome.kind === "fault") this.#options.owner.on(outcome);
    this.#options.settle(outcome);
  }
}
