import { setImmediate as nextTurn } from "node:timers/promises";
import type { BrokerMessage } from "#shared/broker/broker.ts";
import { Fault } from "#shared/fault/fault.ts";
import { type Timer } from "#shared/process/clock.ts";
import { LogThrottle } from "#shared/process/log.ts";
import type { Control } from "#shared/protocol/job.ts";
import { beatPayload, decodeJson } from "#shared/protocol/frame-payload.ts";
import { decodeFrame, isTerminal, type Frame } from "#shared/protocol/frame.ts";
import { tokenCharacters } from "#shared/protocol/identifiers.ts";
import { parseReplySubject, replyPattern } from "#shared/protocol/subjects.ts";
import type { Target } from "../fleet/roster.ts";
import type { JobOutcome } from "./job-events.ts";
import { answerNotFound, machineOffline } from "./machine-fault.ts";
import { BrokerLine, cutOff } from "./broker-line.ts";
import { MachineTeller } from "./tell-machines.ts";
import { OpenJob, type JobSubmission, type OpenJobsOptions } from "./open-job.ts";

/** Limits the memory of all request bodies that open jobs hold together. */
export const keptBodyBytesMax = 512 * 1024 * 1024;

/** Limits the unknown jobs of one beat that this gateway ends. The next beat reports the rest. */
const straysPerBeatMax = 100;

/** Ticks per `acceptWaitMs`, the shortest timeout of an open job. */
const ticksPerAcceptWait = 6;

const unreadable = {
  malformed: "malformed",
  "unknown-kind": "unknown_kind",
  "other-version": "other_version",
} as const;

/**
 * Owns all open jobs of this gateway. One subscription receives all their answers and one timer checks all their
 * timeouts. It also answers messages about unknown jobs: a machine that still works on a job without an owner is told
 * to stop, whatever was lost before.
 */
export class OpenJobs {
  readonly #options: OpenJobsOptions;
  readonly #followers = new Map<string, OpenJob>();
  /** The open jobs by machine, since beats arrive by machine. */
  readonly #byMachine = new Map<string, Set<OpenJob>>();
  readonly #probedAtMs = new Map<string, number>();
  readonly #throttle: LogThrottle;
  readonly #timers: readonly Timer[];
  readonly #teller: MachineTeller;
  /** The line of this gateway to the broker. */
  readonly line: BrokerLine;
  #keptBodyBytes = 0;
  readonly #handingOver = new Set<string>();
  #isStopping = false;

  constructor(options: OpenJobsOptions) {
    this.#options = options;
    const { broker, clock, timing, gateway } = options;
    this.line = new BrokerLine(options);
    this.#teller = new MachineTeller(options);
    this.#throttle = new LogThrottle(clock);
    broker.subscribe(replyPattern(gateway), (message) => this.#receive(message));
    broker.onChange((connected) => this.#turned(connected));
    this.#timers = [
      clock.every(timing.acceptWaitMs / ticksPerAcceptWait, () => this.#tick()),
      clock.every(timing.leaseIntervalMs, () => this.#teller.giveLeases(this.#byMachine)),
    ];
  }

  get size(): number {
    return this.#followers.size;
  }

  /** Returns how many open jobs run at this epoch of a machine. */
  openOn({ machine, epoch }: Target): number {
    let open = 0;
    for (const { target } of this.#byMachine.get(machine) ?? []) if (target.epoch === epoch) open += 1;
    return open;
  }

  /** True once the deadline of a shutdown has passed: no job is placed any more. */
  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** Throws while this gateway is cut off, because it then does not know which machines are present. */
  assertConnection(): void {
    const nowMs = this.#options.clock.now();
    if (nowMs > this.line.awakeUntilMs) this.line.paused(nowMs);
    if (!this.#options.broker.connected) throw cutOff();
  }

  /** Gives a machine a job and follows it to its one outcome. */
  run(submission: JobSubmission): Promise<JobOutcome> {
    const { target, body, owner } = submission;
    const refused = this.#refusal(submission);
    if (refused !== undefined) {
      owner.on(refused);
      return Promise.resolve(refused);
    }
    // The client may resume an answer here that this gateway still follows for it.
    const countedTokens = this.#followers.get(submission.head.id)?.follower.moved();
    const job = new OpenJob(submission, this.#options, this, countedTokens);
    this.#keptBodyBytes += body.byteLength;
    this.#followers.set(job.id, job);
    this.#byMachine.getOrInsertComputed(target.machine, () => new Set()).add(job);
    this.#teller.greet(target);
    job.send({ kind: "job" });
    if (job.isResumable) this.#teller.tellCounted(job);
    return job.outcome;
  }

  /** Cancels all open jobs of a machine with this fault, because the machine was revoked or renamed. */
  cancelOn(machine: string, fault: Fault): void {
    for (const { follower } of this.#byMachine.get(machine) ?? []) follower.cancel(fault);
  }

  /**
   * Ends those jobs of a machine whose answers another machine has room to go on with. It ends one in a turn, so that the
   * next one is judged with the one before in its new place.
   */
  async handOver(machine: string): Promise<void> {
    if (this.#handingOver.has(machine)) return;
    this.#handingOver.add(machine);
    const fault = new Fault("shutting_down", { message: "The GPU machine drains and hands its answers over." });
    try {
      for (const job of this.#byMachine.get(machine) ?? []) {
        if (job.owner.mayGoOn()) job.follower.cancel(fault);
        await nextTurn();
      }
    } finally {
      this.#handingOver.delete(machine);
    }
  }

  /** Tells machines up to which tokens resumable answers are counted here, as often as the book is told of them. */
  tellCounts(): void {
    this.#teller.tellCounts(this.#byMachine);
  }

  /**
   * Cancels all open jobs with this fault, because the deadline of a shutdown has passed. Answers that can be resumed go on
   * at their machines.
   */
  cancelAll(fault: Fault): void {
    this.#isStopping = true;
    this.tellCounts();
    for (const { follower, isResumable } of this.#followers.values()) {
      if (isResumable) follower.fail(fault);
      else follower.cancel(fault);
    }
  }

  stop(): void {
    for (const timer of this.#timers) timer.cancel();
    this.#teller.tellFinished();
  }

  /** Called when a job needs its body no more. */
  bodyReleased(bytes: number): void {
    this.#keptBodyBytes -= bytes;
  }

  #refusal({ head, body, signal, target }: JobSubmission): JobOutcome | undefined {
    const failed = (fault: Fault): JobOutcome => ({ kind: "fault", fault, taken: true });
    if (signal.aborted) return failed(Fault.from(signal.reason));
    if (!this.#options.broker.connected) return failed(cutOff());
    if (this.#keptBodyBytes + body.byteLength > keptBodyBytesMax) {
      const message = `The running requests of this gateway hold ${keptBodyBytesMax} bytes already (keptBodyBytesMax).`;
      return failed(new Fault("server_is_overloaded", { message }));
    }
    // The machine was ranked for this job before its revocation.
    if (this.#options.roster.isRevoked(target.machine)) return { kind: "fault", fault: machineOffline(), taken: false };
    // The stream that runs here would be cut before the machine refuses another key.
    const followed = this.#followers.get(head.id);
    if (followed?.follower.isRunning && followed.keyId !== head.keyId) return failed(answerNotFound());
    return undefined;
  }

  #receive(message: BrokerMessage): void {
    const { subject } = message;
    const nowMs = this.#options.clock.now();
    if (nowMs > this.line.awakeUntilMs) this.line.paused(nowMs);
    // A reply subject ends in the id of its job.
    const open = this.#followers.get(subject.slice(-tokenCharacters));
    const isOpen = open?.reply === subject;
    if (message.noResponders) {
      if (isOpen) this.#nobodyThere(open, nowMs);
      return;
    }
    const decoded = decodeFrame(message.data);
    if (decoded.outcome !== "frame") this.#tellUnreadable(subject, decoded.outcome);
    else if (!isOpen || decoded.frame.kind === "beat") this.#receiveOther(subject, decoded.frame, nowMs);
    else if (open.isResumable && this.line.wasAway) this.#deliverLate(open, decoded.frame);
    else open.follower.frame(decoded.frame, nowMs);
  }

  #nobodyThere({ follower, target }: OpenJob, nowMs: number): void {
    follower.noResponders(nowMs, { isAwaited: this.#options.roster.awaited(target.machine) });
  }

  /** A gateway that slept may have the end of an answer that moved before: the message of the move comes behind it. */
  #deliverLate({ follower }: OpenJob, frame: Frame): void {
    const deliver = (): void => follower.frame(frame, this.#options.clock.now());
    const isEnd = isTerminal(frame.kind) && frame.sequence > 0;
    if (isEnd) void this.#options.broker.flush().then(deliver, deliver);
    else deliver();
  }

  /** Handles frames that belong to no open job: beats of machines, and late or misdirected frames. */
  #receiveOther(subject: string, { kind, payload }: Frame, nowMs: number): void {
    const address = parseReplySubject(subject);
    if (address === undefined) return;
    const { machine, job } = address;
    if (kind === "beat") {
      if (this.#options.floodGuard?.admits("beat", machine) === false) return;
      this.#receiveBeat(machine, payload, nowMs);
      return;
    }
    this.#options.meter?.frameDropped(this.#followers.has(job) ? "other_machine" : "unknown_job");
    if (!isTerminal(kind)) return;
    const presence = this.#options.roster.find(machine, nowMs)?.presence;
    if (presence !== undefined) this.finish({ machine, epoch: presence.epoch }, job, { atOnce: false });
  }

  #tellUnreadable(subject: string, outcome: keyof typeof unreadable): void {
    const machine = parseReplySubject(subject)?.machine;
    if (machine === undefined) return;
    this.#options.meter?.frameDropped(unreadable[outcome]);
    if (!this.#throttle.isDue(`frame ${machine}`)) return;
    this.#options.log.warn({ machine, outcome }, "frames that this gateway cannot read are dropped");
  }

  #receiveBeat(machine: string, payload: Uint8Array, nowMs: number): void {
    const beat = decodeJson(beatPayload, payload);
    if (beat === undefined) return;
    const { epoch } = beat;
    this.#options.roster.heard({ machine, epoch }, nowMs);
    const rows = new Map(beat.rows.map((row) => [row[0], row]));
    for (const open of this.#byMachine.get(machine) ?? []) {
      if (open.target.epoch === epoch) open.follower.beat(rows.get(open.id), nowMs, beat.load);
    }
    let strays = 0;
    for (const [job, state] of beat.rows) {
      if (this.#followers.has(job)) continue;
      strays += 1;
      if (strays > straysPerBeatMax) return;
      if (state === "ended") this.finish({ machine, epoch }, job, { atOnce: false });
      else this.tell({ machine, epoch }, { kind: "cancel", job, reason: "gave_up" });
    }
  }

  /** Removes a job. A machine without open jobs keeps no entry. */
  closed(job: OpenJob): void {
    const { machine } = job.target;
    this.#followers.delete(job.id);
    const others = this.#byMachine.get(machine);
    others?.delete(job);
    if (others?.size !== 0) return;
    this.#byMachine.delete(machine);
    this.#probedAtMs.delete(machine);
  }

  /** True if the machine may be probed now. One probe serves all its jobs, since one beat answers for all of them. */
  mayProbe(machine: string): boolean {
    const nowMs = this.#options.clock.now();
    if (nowMs - (this.#probedAtMs.get(machine) ?? -Infinity) < this.#options.timing.parkRetryMs) return false;
    this.#probedAtMs.set(machine, nowMs);
    return true;
  }

  finish(target: Target, job: string, when: { readonly atOnce: boolean }): void {
    this.#teller.finish(target, job, when);
  }

  tell(target: Target, control: Control, reply?: string): void {
    this.#teller.tell(target, control, reply);
  }

  #turned(connected: boolean): void {
    const nowMs = this.#options.clock.now();
    this.line.turned(nowMs);
    if (!connected) return;
    this.#teller.giveLeases(this.#byMachine);
    for (const { follower } of this.#followers.values()) follower.reconnected(nowMs);
  }

  #tick(): void {
    const nowMs = this.#options.clock.now();
    this.line.ticked(nowMs);
    this.#teller.tellFinished();
    const connection = this.line.state;
    for (const { follower } of this.#followers.values()) follower.tick(nowMs, connection);
  }
}
