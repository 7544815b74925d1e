import type { Broker, BrokerMessage } from "#shared/broker/broker.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { Clock, Timer } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { Seldom } from "#shared/process/seldom.ts";
import type { Control } from "#shared/protocol/control.ts";
import { beatPayload, decodeJson, encodeJson } from "#shared/protocol/frame-payload.ts";
import { decodeFrame, isTerminal, type Frame } from "#shared/protocol/frame.ts";
import { limits } from "#shared/protocol/limits.ts";
import { tokenCharacters } from "#shared/protocol/token.ts";
import { machineSubject, parseReplySubject, replyPattern, replySubject } from "#shared/protocol/subjects.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { Roster } from "../fleet/roster.ts";
import type { JobOutcome } from "./follow-frames.ts";
import { Passing } from "#shared/process/passing.ts";
import { OpenJob, type JobOwner, type JobSubmission, type Target } from "./open-job.ts";

interface OpenJobsOptions {
  readonly broker: Broker;
  /** This boot of this gateway, as its reply subjects carry it. */
  readonly gateway: string;
  readonly roster: Roster;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter?: FrameMeter;
}

/** Counts the frames that are of no use, and those that were lost. */
export interface FrameMeter {
  replayAsked(): void;
  gapFilled(frames: number): void;
  frameDropped(reason: "unknown_job" | "other_machine" | "malformed" | "unknown_kind" | "other_version"): void;
}

/** All bodies of requests under way together may take this much memory. */
export const keptBodyBytesMax = 512 * 1024 * 1024;

/** A beat may tell of this many jobs that nobody waits for; the next one tells of the rest. */
const straysPerBeatMax = 100;

/** How often open jobs are looked at: the shortest of their waits divides by it. */
const ticksPerAcceptWait = 6;

const unreadable = {
  malformed: "malformed",
  "unknown-kind": "unknown_kind",
  "other-version": "other_version",
} as const;

/**
 * All jobs that this gateway waits for: the one owner of them. There is one subscription for all their answers and one
 * timer for all their waits. It answers what it does not know: a machine that still works on a job that nobody waits
 * for is told to stop, whatever was lost before.
 */
export class OpenJobs {
  readonly #options: OpenJobsOptions;
  readonly #owner: JobOwner;
  readonly #followers = new Passing<OpenJob>();
  /** The same by machine, since beats come by machine. */
  readonly #byMachine = new Map<string, OpenJob[]>();
  readonly #probedAtMs = new Map<string, number>();
  /** To which boot of each machine a lease was given since the last round of them. */
  readonly #leased = new Map<string, string>();
  readonly #seldom: Seldom;
  #tickedAtMs: number;
  /** What each machine is still to be told of as finished. */
  readonly #finished = new Map<string, { target: Target; jobs: string[] }>();
  readonly #timers: readonly Timer[];
  #connectionSinceMs: number;
  /** Unless it was there all the time. */
  #backSinceMs: number | undefined;
  #keptBodyBytes = 0;

  constructor(options: OpenJobsOptions) {
    this.#options = options;
    this.#owner = this.#ownerOfJobs();
    const { broker, clock, timing, gateway } = options;
    this.#connectionSinceMs = clock.now();
    this.#tickedAtMs = clock.now();
    this.#seldom = new Seldom(clock);
    broker.subscribe(replyPattern(gateway), (message) => this.#receive(message));
    broker.onChange((connected) => this.#turned(connected));
    this.#timers = [
      clock.every(timing.acceptWaitMs / ticksPerAcceptWait, () => this.#tick()),
      clock.every(timing.leaseIntervalMs, () => this.#giveLeases()),
    ];
  }

  get size(): number {
    return this.#followers.size;
  }

  /** How many of them are under way at this boot of a machine. */
  openOn({ machine, epoch }: Target): number {
    let open = 0;
    for (const { target } of this.#byMachine.get(machine) ?? []) if (target.epoch === epoch) open += 1;
    return open;
  }

  /** Whether machines may not have been heard yet since this gateway could hear them. */
  get justConnected(): boolean {
    const { clock, timing } = this.#options;
    return clock.now() - this.#connectionSinceMs < timing.offlineAfterMs;
  }

  /** Whether this gateway was cut off or stood still a moment ago, so that machines may have let go of its jobs. */
  get wasAway(): boolean {
    const { clock, timing } = this.#options;
    return this.#backSinceMs !== undefined && clock.now() - this.#backSinceMs < timing.offlineAfterMs;
  }

  /** Throws while this gateway is cut off: then it knows nothing of who is there. */
  insistOnConnection(): void {
    if (!this.#options.broker.connected) throw cutOff();
  }

  /** Gives a machine a job and follows it to its one outcome. */
  run(submission: JobSubmission): Promise<JobOutcome> {
    const { target, body, signal } = submission;
    const refused = this.#refusal(body, signal);
    if (refused !== undefined) {
      const outcome: JobOutcome = { outcome: "fault", fault: refused, said: false };
      submission.placed?.ended(outcome);
      return Promise.resolve(outcome);
    }
    const job = new OpenJob(submission, this.#owner, this.#options.clock.now());
    this.#keptBodyBytes += body.byteLength;
    this.#followers.set(job.id, job);
    this.#enlist(job);
    if (this.#leased.get(target.machine) !== target.epoch) this.#giveLease(target);
    job.follower.submit();
    return job.outcome;
  }

  /** Ends all that is under way with this fault: the deadline of a shutdown has passed. */
  cancelAll(fault: Fault): void {
    for (const { follower } of this.#followers.values()) follower.cancel(fault);
  }

  stop(): void {
    for (const timer of this.#timers) timer.cancel();
    this.#tellFinished();
  }

  #ownerOfJobs(): JobOwner {
    const { broker, gateway, roster, timing, meter } = this.#options;
    return {
      timing,
      replyOf: ({ machine }, job) => replySubject({ gateway, machine, job }),
      publishJob: ({ target, reply, headers, body }) =>
        void broker.publish(machineSubject(target, "job"), body, { reply, headers }),
      publishPart: (target, headers, part) => void broker.publish(machineSubject(target, "part"), part, { headers }),
      tell: ({ target, reply }, told) => this.#tell(target, told, reply),
      finish: (target, id) => this.#finish(target, id),
      mayProbe: (machine) => this.#mayProbe(machine),
      replayAsked: () => meter?.replayAsked(),
      gapFilled: (frames) => meter?.gapFilled(frames),
      notReached: (target) => roster.notReached(target),
      awaited: (machine) => roster.awaited(machine),
      bodyReleased: (bytes) => {
        this.#keptBodyBytes -= bytes;
      },
      settled: (job) => this.#close(job),
    };
  }

  #refusal(body: Uint8Array, signal: AbortSignal): Fault | undefined {
    if (signal.aborted) return Fault.from(signal.reason);
    if (!this.#options.broker.connected) return cutOff();
    if (this.#keptBodyBytes + body.byteLength > keptBodyBytesMax) {
      return new Fault("server_is_overloaded", {
        message: `The requests under way at this gateway take ${keptBodyBytesMax} bytes already (keptBodyBytesMax).`,
      });
    }
    return undefined;
  }

  #receive(message: BrokerMessage): void {
    const { subject } = message;
    const nowMs = this.#options.clock.now();
    const open = this.#openAt(subject);
    if (message.nobodyThere) {
      open?.follower.nobodyThere(nowMs);
      return;
    }
    const decoded = decodeFrame(message.data);
    if (decoded.outcome !== "frame") this.#tellUnreadable(subject, decoded.outcome);
    else if (open !== undefined && decoded.frame.kind !== "beat") open.follower.frame(decoded.frame, nowMs);
    else this.#receiveOther(subject, decoded.frame, nowMs);
  }

  /** A reply subject ends in the id of its job. */
  #openAt(subject: string): OpenJob | undefined {
    const open = this.#followers.get(subject.slice(-tokenCharacters));
    return open?.reply === subject ? open : undefined;
  }

  /** What is of no open job: the beats of machines, and what comes late or astray. */
  #receiveOther(subject: string, { kind, payload }: Frame, nowMs: number): void {
    const address = parseReplySubject(subject);
    if (address === undefined) return;
    const { machine, job } = address;
    if (kind === "beat") {
      this.#receiveBeat(machine, payload, nowMs);
      return;
    }
    this.#options.meter?.frameDropped(this.#followers.has(job) ? "other_machine" : "unknown_job");
    if (isTerminal(kind)) this.#finishStray(machine, job);
  }

  #tellUnreadable(subject: string, outcome: keyof typeof unreadable): void {
    const machine = parseReplySubject(subject)?.machine;
    if (machine === undefined) return;
    this.#options.meter?.frameDropped(unreadable[outcome]);
    if (!this.#seldom.isDue(`frame ${machine}`)) return;
    this.#options.log.warn({ machine, outcome }, "frames that this gateway cannot read are dropped");
  }

  #receiveBeat(machine: string, payload: Uint8Array, nowMs: number): void {
    const beat = decodeJson(beatPayload, payload);
    if (beat === undefined) return;
    const { epoch } = beat;
    this.#options.roster.heard({ machine, epoch }, nowMs);
    const rows = new Map(beat.rows.map((row) => [row[0], row]));
    // Each of them may end by what it is told.
    for (const open of this.#byMachine.get(machine)?.slice() ?? []) {
      if (open.target.epoch === epoch) open.follower.beat(rows.get(open.id), nowMs);
    }
    let strays = 0;
    for (const [job, state] of beat.rows) {
      if (this.#followers.has(job)) continue;
      strays += 1;
      if (strays > straysPerBeatMax) return;
      if (state === "ended") this.#finish({ machine, epoch }, job);
      else this.#tell({ machine, epoch }, { kind: "cancel", job, reason: "gave_up" });
    }
  }

  #enlist(job: OpenJob): void {
    const { machine } = job.target;
    const others = this.#byMachine.get(machine);
    job.place = others?.length ?? 0;
    if (others === undefined) this.#byMachine.set(machine, [job]);
    else others.push(job);
  }

  /** Nothing is kept of a machine that has no open jobs. */
  #close(job: OpenJob): void {
    const { machine } = job.target;
    this.#followers.delete(job.id);
    const all = this.#byMachine.get(machine);
    const last = all?.pop();
    if (all === undefined || last === undefined) return;
    if (last !== job) {
      all[job.place] = last;
      last.place = job.place;
    }
    if (all.length > 0) return;
    this.#byMachine.delete(machine);
    this.#probedAtMs.delete(machine);
  }

  /** One probe speaks for all jobs of a machine, since one beat answers for all. */
  #mayProbe(machine: string): boolean {
    const nowMs = this.#options.clock.now();
    if (nowMs - (this.#probedAtMs.get(machine) ?? -Infinity) < this.#options.timing.parkRetryMs) return false;
    this.#probedAtMs.set(machine, nowMs);
    return true;
  }

  #finishStray(machine: string, job: string): void {
    const target = this.#targetOf(machine);
    if (target !== undefined) this.#finish(target, job);
  }

  #targetOf(machine: string): Target | undefined {
    const presence = this.#options.roster.find(machine, this.#options.clock.now())?.presence;
    return presence === undefined ? undefined : { machine, epoch: presence.epoch };
  }

  /**
   * Acknowledges terminal frames, with the next tick. A message for each would cost the broker and the machine as much as an
   * answer does, and nobody waits for it: the machine says the frame again only much later.
   */
  #finish(target: Target, job: string): void {
    const { machine, epoch } = target;
    const finished = this.#finished.get(machine);
    if (finished?.target.epoch === epoch) {
      finished.jobs.push(job);
      return;
    }
    // Of another boot of it.
    if (finished !== undefined) this.#tellFinishedTo(finished);
    this.#finished.set(machine, { target, jobs: [job] });
  }

  #tellFinished(): void {
    for (const finished of this.#finished.values()) this.#tellFinishedTo(finished);
    this.#finished.clear();
  }

  #tellFinishedTo({ target, jobs }: { readonly target: Target; readonly jobs: readonly string[] }): void {
    for (let from = 0; from < jobs.length; from += 1_000) {
      this.#tell(target, { kind: "finish", jobs: jobs.slice(from, from + 1_000) });
    }
  }

  #turned(connected: boolean): void {
    const nowMs = this.#options.clock.now();
    this.#connectionSinceMs = this.#backSinceMs = nowMs;
    if (!connected) return;
    this.#giveLeases();
    for (const { follower } of this.#followers.values()) follower.reconnected(nowMs);
  }

  /** Says to every machine that holds jobs of this gateway that somebody waits for them, and what clients took of them. */
  #giveLeases(): void {
    this.#leased.clear();
    for (const [machine, jobs] of this.#byMachine) {
      const byEpoch = Map.groupBy(jobs, ({ target }) => target.epoch);
      for (const [epoch, ofBoot] of byEpoch) this.#giveLease({ machine, epoch }, takenOf(ofBoot));
    }
  }

  #giveLease(target: Target, taken: [string, number][] = []): void {
    this.#leased.set(target.machine, target.epoch);
    this.#tell(target, { kind: "lease", gateway: this.#options.gateway, ...(taken.length > 0 && { taken }) });
  }

  #tell(target: Target, control: Control, reply?: string): void {
    this.#options.broker.publish(
      machineSubject(target, "control"),
      encodeJson(control),
      reply === undefined ? {} : { reply },
    );
  }

  #tick(): void {
    const nowMs = this.#options.clock.now();
    const pausedMs = nowMs - this.#tickedAtMs;
    this.#tickedAtMs = nowMs;
    if (pausedMs > this.#options.timing.probeAfterMs) {
      // This process stood still, and what came meanwhile is still to be read: nobody else was silent.
      this.#connectionSinceMs = this.#backSinceMs = nowMs;
      this.#options.roster.reconnected(nowMs);
    }
    this.#tellFinished();
    const connection = { connected: this.#options.broker.connected, sinceMs: this.#connectionSinceMs };
    for (const { follower } of this.#followers.values()) follower.tick(nowMs, connection);
  }
}

function takenOf(jobs: readonly OpenJob[]): [string, number][] {
  const taken: [string, number][] = [];
  for (const { id, follower } of jobs) {
    if (taken.length === limits.jobsPerAgentMax) break;
    const bytes = follower.tellTaken();
    if (bytes !== undefined) taken.push([id, bytes]);
  }
  return taken;
}

function cutOff(): Fault {
  return new Fault("backend_unavailable", { message: "The gateway has no connection to the machines just now." });
}
