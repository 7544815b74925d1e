import { setImmediate as nextTurn } from "node:timers/promises";
import type { BrokerMessage } from "#shared/broker/broker.ts";
import { Fault } from "#shared/fault/fault.ts";
import { sleep, type Timer } from "#shared/process/clock.ts";
import { LogThrottle } from "#shared/process/log.ts";
import type { Control } from "#shared/protocol/job.ts";
import { beatPayload, decodeJson, encodeJson } from "#shared/protocol/frame-payload.ts";
import { decodeFrame, isTerminal, type Frame } from "#shared/protocol/frame.ts";
import { limits } from "#shared/protocol/limits.ts";
import { roundTripMsMax } from "#shared/protocol/presence.ts";
import { tokenCharacters } from "#shared/protocol/identifiers.ts";
import { machineSubject, parseReplySubject, replyPattern } from "#shared/protocol/subjects.ts";
import type { Line } from "#shared/protocol/timing.ts";
import type { Target } from "../fleet/roster.ts";
import type { JobOutcome } from "./job-events.ts";
import { answerNotFound, machineOffline } from "./machine-fault.ts";
import { OpenJob, type JobSubmission, type OpenJobsOptions } from "./open-job.ts";

/** Limits the memory of all request bodies that open jobs hold together. */
export const keptBodyBytesMax = 512 * 1024 * 1024;

/** Limits the unknown jobs of one beat that this gateway ends. The next beat reports the rest. */
const straysPerBeatMax = 100;

/** A shorter round trip between this gateway and the broker changes no timeout. */
const roundTripMsNoticed = 100;

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
  /** The epoch of each machine that got a lease since the last round of leases. */
  readonly #leased = new Map<string, string>();
  readonly #throttle: LogThrottle;
  #tickedAtMs: number;
  /** Finished jobs that are not acknowledged yet, by the subject of their machine's boot. */
  readonly #finished = new Map<string, { target: Target; jobs: string[] }>();
  readonly #timers: readonly Timer[];
  #connectionSinceMs: number;
  /** The time at which the connection was last lost or came back. */
  #turnedAtMs = -Infinity;
  #pinging: Promise<boolean> | undefined;
  /** The time of the last cut, reconnect or pause of this gateway. Undefined if none of these happened. */
  #backSinceMs: number | undefined;
  #keptBodyBytes = 0;
  readonly #handingOver = new Set<string>();
  #isStopping = false;

  constructor(options: OpenJobsOptions) {
    this.#options = options;
    const { broker, clock, timing, gateway } = options;
    this.#connectionSinceMs = clock.now();
    this.#tickedAtMs = clock.now();
    this.#throttle = new LogThrottle(clock);
    broker.subscribe(replyPattern(gateway), (message) => this.#receive(message));
    broker.onChange((connected) => this.#turned(connected));
    this.#timers = [
      clock.every(timing.acceptWaitMs / ticksPerAcceptWait, () => this.#tick()),
      clock.every(timing.leaseIntervalMs, () => this.#giveLeases()),
      clock.every(timing.countsIntervalMs, () => this.#tellCounts()),
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

  /**
   * True if the broker answers, and its connection was neither lost nor came back since a time, or a moment ago. The
   * silence of a machine may otherwise be the broker's. Concurrent callers share one ping.
   */
  async brokerAnsweredSince(sinceMs: number): Promise<boolean> {
    const { clock, timing } = this.#options;
    if (this.#turnedAtMs > Math.min(sinceMs, clock.now() - timing.offlineAfterMs)) return false;
    this.#pinging ??= this.#ping().finally(() => (this.#pinging = undefined));
    return this.#pinging;
  }

  async #ping(): Promise<boolean> {
    const { broker, clock, timing } = this.#options;
    const answered = broker.flush().then(
      () => true,
      () => broker.connected,
    );
    return Promise.race([answered, sleep(clock, timing.acceptWaitMs + 3 * broker.roundTripMs).then(() => false)]);
  }

  /** True once the deadline of a shutdown has passed: no job is placed any more. */
  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** True if this gateway was cut off or stood still a moment ago. Machines may then have dropped its jobs. */
  get wasAway(): boolean {
    const { clock, timing } = this.#options;
    return this.#backSinceMs !== undefined && clock.now() - this.#backSinceMs < timing.offlineAfterMs;
  }

  /** Resolves when this gateway has read all that the broker had for it during a pause. Undefined without a pause. */
  #caughtUp(): Promise<unknown> | undefined {
    return this.wasAway ? this.#options.broker.flush().catch(() => undefined) : undefined;
  }

  /** Throws while this gateway is cut off, because it then does not know which machines are present. */
  assertConnection(): void {
    this.#noticePause(this.#options.clock.now());
    if (!this.#options.broker.connected) throw cutOff();
  }

  /** Returns the line from this gateway to the machine. Each end counts only a long round trip to the broker. */
  lineTo({ machine }: Target): Line & { readonly roundTripMs: number } {
    const { broker, clock, roster } = this.#options;
    const { roundTripMs = 0, tunnelled = false } = roster.find(machine, clock.now())?.presence ?? {};
    const ownMs = broker.roundTripMs < roundTripMsNoticed ? 0 : Math.min(broker.roundTripMs, roundTripMsMax);
    return { roundTripMs: roundTripMs + ownMs, tunnelled };
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
    if (this.#leased.get(target.machine) !== target.epoch) this.#giveLease(target);
    job.follower.submit();
    const counted = job.countedNews();
    if (counted.length > 0) this.#giveLease(target, { counted });
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
        if (job.mayGoOn()) job.follower.cancel(fault);
        await nextTurn();
      }
    } finally {
      this.#handingOver.delete(machine);
    }
  }

  /**
   * Cancels all open jobs with this fault, because the deadline of a shutdown has passed. Answers that can be resumed go on
   * at their machines.
   */
  cancelAll(fault: Fault): void {
    this.#isStopping = true;
    this.#tellCounts();
    for (const { follower, isResumable } of this.#followers.values()) {
      if (isResumable) follower.leave(fault);
      else follower.cancel(fault);
    }
  }

  stop(): void {
    for (const timer of this.#timers) timer.cancel();
    this.#tellFinished();
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
    this.#noticePause(nowMs);
    const open = this.#openAt(subject);
    if (message.noResponders) {
      const isAwaited = open !== undefined && this.#options.roster.awaited(open.target.machine);
      open?.follower.noResponders(nowMs, { isAwaited });
      return;
    }
    const decoded = decodeFrame(message.data);
    if (decoded.outcome !== "frame") this.#tellUnreadable(subject, decoded.outcome);
    else if (open !== undefined && decoded.frame.kind !== "beat") this.#deliver(open, decoded.frame, nowMs);
    else this.#receiveOther(subject, decoded.frame, nowMs);
  }

  /** A gateway that slept may have the end of an answer that moved before: the message of the move comes behind it. */
  #deliver({ follower, isResumable }: OpenJob, frame: Frame, nowMs: number): void {
    const isEnd = isResumable && isTerminal(frame.kind) && frame.sequence > 0;
    const sure = isEnd ? this.#caughtUp() : undefined;
    if (sure === undefined) follower.frame(frame, nowMs);
    else void sure.then(() => follower.frame(frame, this.#options.clock.now()));
  }

  /** A reply subject ends in the id of its job. */
  #openAt(subject: string): OpenJob | undefined {
    const open = this.#followers.get(subject.slice(-tokenCharacters));
    return open?.reply === subject ? open : undefined;
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
    if (presence !== undefined) this.finish({ machine, epoch: presence.epoch }, job);
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
      if (state === "ended") this.finish({ machine, epoch }, job);
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

  /**
   * Queues the acknowledgement of a terminal frame for the next tick. A message for each one would cost the broker and
   * the machine as much as an answer does. No client waits for it: the machine resends the frame only much later. That of
   a resumable answer goes at once: its client may ask another gateway for it next, which is to count nothing of it again.
   */
  finish(target: Target, job: string, { atOnce }: { readonly atOnce: boolean } = { atOnce: false }): void {
    if (atOnce) return this.tell(target, { kind: "finish", jobs: [job], gateway: this.#options.gateway });
    const subject = machineSubject(target, "control");
    this.#finished.getOrInsertComputed(subject, () => ({ target, jobs: [] })).jobs.push(job);
  }

  #tellFinished(): void {
    for (const { target, jobs } of this.#finished.values()) {
      for (let from = 0; from < jobs.length; from += 1_000) {
        this.tell(target, { kind: "finish", jobs: jobs.slice(from, from + 1_000), gateway: this.#options.gateway });
      }
    }
    this.#finished.clear();
  }

  #turned(connected: boolean): void {
    const nowMs = this.#options.clock.now();
    this.#connectionSinceMs = this.#backSinceMs = this.#turnedAtMs = nowMs;
    if (!connected) return;
    this.#giveLeases();
    for (const { follower } of this.#followers.values()) follower.reconnected(nowMs);
  }

  /**
   * Sends a lease to every machine that holds jobs of this gateway. The lease reports the bytes that clients have read.
   */
  #giveLeases(): void {
    this.#leased.clear();
    for (const [machine, jobs] of this.#byMachine) {
      const byEpoch = Map.groupBy(jobs, ({ target }) => target.epoch);
      for (const [epoch, ofBoot] of byEpoch) this.#giveLease({ machine, epoch }, takenOf(ofBoot));
    }
  }

  /** Tells machines up to which tokens resumable answers are counted here, for the case that this gateway dies. */
  #tellCounts(): void {
    if (!this.#options.broker.connected) return;
    for (const [machine, jobs] of this.#byMachine) {
      for (const [epoch, ofBoot] of Map.groupBy(jobs, ({ target }) => target.epoch)) {
        const counted = ofBoot.flatMap((job) => job.countedNews()).slice(0, limits.jobsPerAgentMax);
        if (counted.length > 0) this.#giveLease({ machine, epoch }, { counted });
      }
    }
  }

  #giveLease(target: Target, told: Pick<Extract<Control, { kind: "lease" }>, "taken" | "counted"> = {}): void {
    this.#leased.set(target.machine, target.epoch);
    this.tell(target, { kind: "lease", gateway: this.#options.gateway, ...told });
  }

  tell(target: Target, control: Control, reply?: string): void {
    const options = reply === undefined ? {} : { reply };
    this.#options.broker.publish(machineSubject(target, "control"), encodeJson(control), options);
  }

  /**
   * Detects a pause of this process: no tick came for `probeAfterMs`. Messages that arrived meanwhile are still unread,
   * so the silence of machines does not count. A frame, a request or a timer may come first after a pause, so each of
   * them calls this.
   */
  #noticePause(nowMs: number): void {
    if (nowMs - this.#tickedAtMs <= this.#options.timing.probeAfterMs) return;
    this.#tickedAtMs = this.#connectionSinceMs = this.#backSinceMs = nowMs;
    this.#options.roster.reconnected(nowMs);
  }

  #tick(): void {
    const nowMs = this.#options.clock.now();
    this.#noticePause(nowMs);
    this.#tickedAtMs = nowMs;
    this.#tellFinished();
    const connection = { connected: this.#options.broker.connected, sinceMs: this.#connectionSinceMs };
    for (const { follower } of this.#followers.values()) follower.tick(nowMs, connection);
  }
}

function takenOf(jobs: readonly OpenJob[]): { readonly taken?: [string, number][] } {
  const taken: [string, number][] = [];
  for (const { id, follower } of jobs) {
    if (taken.length === limits.jobsPerAgentMax) break;
    const bytes = follower.tellTaken();
    if (bytes !== undefined) taken.push([id, bytes]);
  }
  return taken.length > 0 ? { taken } : {};
}

/** The fault of a request while this gateway's connection to the broker is down, or was a moment ago. */
export function cutOff(internal?: string): Fault {
  const message = "The gateway has no connection to the broker at the moment.";
  return new Fault("backend_unavailable", { message, internal });
}
