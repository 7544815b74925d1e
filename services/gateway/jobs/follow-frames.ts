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
import { limits } from "#shared/protocol/limits.ts";
import { attachRefused, isEarlier } from "./attach-frames.ts";
import { type LineState, Patience } from "./await-machine.ts";
import { Credit } from "./credit.ts";
import type { FollowedJob, JobEnder, JobOutcome, JobOwner } from "./job-events.ts";
import { LostFrames } from "./lost-frames.ts";
import {
  leftTooLong,
  machineBrokeRules,
  machineDisconnected,
  machineFault,
  rejectFault,
  resumedElsewhere,
  streamGap,
} from "./machine-fault.ts";

/**
 * Follows one job at its gateway, from the first message to its one outcome. It detects missing frames and requests
 * them again. It ends the job when they do not arrive. It detects a silent machine. It does not parse the answer: its
 * owner does.
 */
export class FrameFollower implements JobEnder {
  readonly #job: FollowedJob;
  /** Undefined once the machine has the whole body, because the sender holds that body in memory. */
  #parts: PartSender | undefined;
  readonly #startedAtMs: number;
  #heardAtMs: number;
  /** The course of a job: offered until the machine has it, then running, then settled with its one outcome. */
  #phase: "offered" | "running" | "settled" = "offered";
  /** The sequence number of the frame that comes next. */
  #next = 1;
  #receivedBytes = 0;
  /** Set once credit is counted, a frame did not come in its turn, or the machine is waited for. */
  #credit: Credit | undefined;
  #lost: LostFrames | undefined;
  #patience: Patience | undefined;
  /** `tick` returns at once until this time, unless the job awaits something or the connection is down. */
  #restsUntilMs = 0;
  #said = false;
  #row: BeatRow | undefined;

  /** `parts` sends a body that is too large for one message. */
  constructor(job: FollowedJob, nowMs: number, parts?: PartSender) {
    this.#job = job;
    this.#parts = parts;
    this.#startedAtMs = nowMs;
    this.#heardAtMs = nowMs;
  }

  /** True once the machine has taken the job, so that it is of this job's key. */
  get isRunning(): boolean {
    return this.#phase === "running";
  }

  /** Read anew after each call that may settle the job. */
  get #isSettled(): boolean {
    return this.#phase === "settled";
  }

  frame(frame: Frame, nowMs: number): void {
    const { kind, sequence } = frame;
    const { resumes } = this.#job;
    if (this.#phase === "settled") return;
    this.#heardAtMs = nowMs;
    if (resumes !== undefined && isEarlier(frame, resumes, this.#phase === "offered")) return;
    if (this.#phase === "offered" && kind !== "reject") this.#accept(frame, nowMs);
    switch (kind) {
      case "data":
        if (this.#isNext(sequence, nowMs)) this.#take(frame);
        return;
      case "fault":
      case "end":
        if (kind === "fault" && sequence === 0) attachRefused(this, frame, this.#job, this.#next);
        else if (this.#isNext(sequence, nowMs)) this.#finish(frame);
        return;
      case "part-ack": {
        const payload = decodeJson(partAckPayload, frame.payload);
        if (payload !== undefined) this.#parts?.acknowledge(payload.received, nowMs);
        if (this.#parts?.complete) this.#parts = undefined;
        return;
      }
      case "reject":
        if (this.#phase === "offered")
          this.fail(rejectFault(decodeJson(rejectPayload, frame.payload)), { taken: false });
        return;
      case "accept":
      case "beat":
    }
  }

  /** Takes the job's row from a beat of its machine. Undefined means that the machine no longer has the job. */
  beat(row: BeatRow | undefined, nowMs: number, load?: LoadNews): void {
    if (this.#phase !== "running") return;
    if (row === undefined) {
      // The machine tells whether the job moved to another gateway.
      if (this.#job.isResumable) this.#lostFrames().ask(this.#next, nowMs);
      else this.fail(machineDisconnected("the machine's beat has no row for this job"));
      return;
    }
    this.#heardAtMs = nowMs;
    this.#row = row;
    const { owner } = this.#job;
    owner.on({ kind: "beat", row, load });
    const [, , , tokens, lastSequence, credit] = row;
    // An answer in one piece comes at its end; a beat shows before that it has begun.
    if (tokens > 0 && owner.unreadBytes() === undefined) owner.on({ kind: "begun" });
    if (lastSequence >= this.#next) this.#lostFrames().missing(lastSequence, this.#next, nowMs);
    this.#credit?.known(credit);
  }

  /** Returns the bytes that the client has read, if the next lease should report them to the machine. */
  tellTaken(): number | undefined {
    return this.#receivedBytes < limits.takenStepBytes ? undefined : this.#counted().forLease(this.#receivedBytes);
  }

  /**
   * Called when this gateway's own connection is back. Messages sent while it was down are lost, in both directions.
   */
  reconnected(nowMs: number): void {
    if (this.#phase === "offered") this.#waiting().reconnected(nowMs);
    else if (this.#phase === "running") {
      this.#parts?.repeat(nowMs);
      this.#lostFrames().ask(this.#next, nowMs);
    }
  }

  /** Handles the broker's 503 (no responders) for the machine's subject, which is final only for a job that was never accepted. */
  noResponders(nowMs: number, machine: { readonly isAwaited: boolean }): void {
    if (this.#phase === "offered") this.#waiting().nobodyThere(nowMs, machine, this);
  }

  /**
   * Checks the timeouts of the job. Call it as often as the job's shortest timeout requires. It returns at once while
   * no timeout can expire.
   */
  tick(nowMs: number, line: LineState): void {
    if (nowMs < this.#restsUntilMs && line.connected && !this.#awaitsAnything()) return;
    if (this.#isSettled) return;
    const { timing, owner, remainingMs, acceptWithinMs } = this.#job;
    const silentAtMs = this.#heardAtMs + timing.probeAfterMs;
    const lateAtMs = this.#startedAtMs + remainingMs + timing.lostAfterMs;
    this.#restsUntilMs = Math.min(nowMs + timing.beatIntervalMs, Math.max(nowMs, silentAtMs));
    owner.on({ kind: "tick", nowMs, row: this.#row });
    const isRunning = this.#phase === "running";
    if (isRunning) this.#goOn(nowMs, line);
    if (this.#isSettled) return;
    const offeredUntilMs = this.#startedAtMs + Math.min(timing.acceptWaitMs, acceptWithinMs);
    const isQuiet = nowMs < (isRunning ? Math.min(silentAtMs, lateAtMs) : offeredUntilMs);
    if (isQuiet && line.connected && (isRunning || this.#patience === undefined)) return;
    this.#waiting().judge(nowMs, line, isRunning ? this.#heardAtMs : undefined, this);
  }

  /** Asks again for what a running job waits for. */
  #goOn(nowMs: number, { connected, sinceMs }: LineState): void {
    this.#credit?.give(this.#receivedBytes);
    if (!connected) return;
    this.#parts?.tick(nowMs);
    if (this.#lost?.isLost(this.#next, nowMs, sinceMs)) this.stop(streamGap(`frame ${this.#next} did not come again`));
  }

  /**
   * Cancels the job, because its answer is no longer wanted. A job that was published once counts as accepted: a
   * machine that begins at once sends nothing before the first piece of the answer. Disconnecting early therefore does
   * not avoid usage accounting.
   */
  cancel(fault: Fault): void {
    if (this.#isSettled) return;
    if (this.#phase === "offered" && this.#waiting().mayHaveBegun) this.#job.owner.on({ kind: "accepted" });
    this.stop(fault);
  }

  /** Ends the job, because the client resumes its answer by another request. Returns the tokens counted up to here. */
  moved(countedTokens = this.#job.owner.countTokens()): number {
    if (!this.#isSettled) this.#job.owner.on({ kind: "moved", countedTokens });
    this.fail(resumedElsewhere());
    return countedTokens;
  }

  /**
   * Marks the job as accepted. Any frame except a reject means that the machine has the job, even if its accept was
   * lost.
   */
  #accept(frame: Frame, nowMs: number): void {
    this.#phase = "running";
    const { state, resumed } = (frame.kind === "accept" && decodeJson(acceptPayload, frame.payload)) || {};
    if (state === "receiving") this.#parts?.start(nowMs);
    this.#job.owner.on({ kind: "accepted", state, resumed });
  }

  /** Takes the number of a frame. True if the frame is the next one. */
  #isNext(sequence: number, nowMs: number): boolean {
    const isInTurn = this.#lost === undefined && sequence === this.#next;
    if (!isInTurn && !this.#lostFrames().take(sequence, this.#next, nowMs)) return false;
    this.#next += 1;
    return true;
  }

  #lostFrames(): LostFrames {
    return (this.#lost ??= new LostFrames(this.#job, this.#counted()));
  }

  #counted(): Credit {
    return (this.#credit ??= new Credit(this.#job));
  }

  #waiting(): Patience {
    return (this.#patience ??= new Patience(this.#job, this.#startedAtMs));
  }

  #take({ payload, outputTokens }: Frame): void {
    const { owner, creditStepBytes } = this.#job;
    if (this.#receivedBytes === 0) owner.on({ kind: "begun" });
    this.#receivedBytes += payload.byteLength;
    const isCounted = this.#receivedBytes >= creditStepBytes;
    try {
      if (isCounted) this.#counted().assertGranted(this.#receivedBytes);
      if (outputTokens > tokenCountMax)
        throw machineBrokeRules(`it told of ${outputTokens} tokens, and an answer has ${tokenCountMax} at most`);
      owner.on({ kind: "data", payload, outputTokens });
    } catch (thrown) {
      this.stop(Fault.from(thrown));
      return;
    }
    if (!this.#said && owner.hasSaid()) {
      this.#said = true;
      this.#job.said();
    }
    if (isCounted && !this.#isSettled) this.#counts(owner);
  }

  /** Judges what came. The credit of an answer that is gathered goes with ticks: after every frame it would limit nothing. */
  #counts(owner: JobOwner): void {
    if (this.#receivedBytes > limits.resumableBytes && owner.hasLeft()) this.cancel(leftTooLong());
    else if (owner.unreadBytes() !== undefined) this.#counted().give(this.#receivedBytes);
  }

  /**
   * True if the job waits for something that a tick notices first: the machine's first frame, part-acks, resent frames
   * or its client's reading.
   */
  #awaitsAnything(): boolean {
    const waits = this.#lost?.hasGap || this.#credit?.isDue(this.#receivedBytes);
    return this.#phase === "offered" || this.#parts !== undefined || waits === true;
  }

  #finish({ kind, payload }: Frame): void {
    const { owner } = this.#job;
    this.#job.send({ kind: "finish" });
    if (kind === "fault") {
      const reported = decodeJson(faultPayload, payload);
      if (reported?.usage) owner.on({ kind: "usage", usage: reported.usage });
      return this.fail(machineFault(reported, this.#job.kind));
    }
    const end = decodeJson(endPayload, payload);
    if (end === undefined) return this.fail(machineDisconnected("the end frame could not be read"));
    if (end.usage) owner.on({ kind: "usage", usage: end.usage });
    const { heldBack = false } = this.#credit ?? {};
    try {
      this.#settle({ kind: "end", end, receivedBytes: this.#receivedBytes, heldBack });
    } catch (thrown) {
      this.fail(Fault.from(thrown));
    }
  }

  /** Tells the machine to stop, and ends the job. */
  stop(fault: Fault): void {
    const reason = fault.code === "client_closed" || fault.code === "slow_client" ? fault.code : "gave_up";
    this.#job.send({ kind: "cancel", reason });
    this.fail(fault);
  }

  /** Ends the job at this gateway, and leaves an answer that can be resumed to whoever resumes it. */
  fail(fault: Fault, { taken } = { taken: true }): void {
    this.#settle({ kind: "fault", fault, taken });
  }

  /** Tells the owner the outcome. The owner may refuse an end, or leave the job then. */
  #settle(outcome: JobOutcome): void {
    if (this.#isSettled) return;
    if (outcome.kind === "end") this.#job.owner.on(outcome);
    if (this.#isSettled) return;
    this.#phase = "settled";
    if (outcome.kind === "fault") this.#job.owner.on(outcome);
    this.#job.settled(outcome);
  }
}
