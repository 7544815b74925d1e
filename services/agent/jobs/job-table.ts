import { PartCollector } from "./collect-parts.ts";
import type { Broker } from "#shared/broker/broker.ts";
import { type FaultCode, Fault } from "#shared/fault/fault.ts";
import type { Control, JobHead, JobKind, PartHead } from "#shared/protocol/job.ts";
import {
  type AcceptPayload,
  encodeJson,
  type BeatRow,
  type FaultPayload,
  type LoadNews,
  type RejectPayload,
} from "#shared/protocol/frame-payload.ts";
import { encodeFrame } from "#shared/protocol/frame.ts";
import { limits } from "#shared/protocol/limits.ts";
import { replySubject } from "#shared/protocol/subjects.ts";
import { addedSilenceMs } from "#shared/protocol/timing.ts";
import { AgentJob, busy, judgeAdmission, judgeProgress } from "./agent-job.ts";
import { beatRows, GatewaySigns } from "./beats.ts";
import { JobRunner, type RunnerOptions } from "./job-runner.ts";
import { Outbox } from "./outbox.ts";
import { Uplink } from "./uplink.ts";

interface JobTableOptions extends RunnerOptions {
  readonly broker: Broker;
  readonly machine: string;
  /** True if this agent is connected by a tunnel. */
  readonly tunnelled?: boolean | undefined;
}

/** The kinds of jobs that take no slot of a runtime. */
const besideSlots: ReadonlySet<JobKind> = new Set(["models", "manage", "count"]);

/** The tokens that a gateway counts of an answer that it has whole. */
const allTokens = 2 ** 31 - 1;

/** Bounds the ended answers that are kept for clients that may resume them; the oldest are dropped first. */
const leftAnswersMax = 64;
/** Time for the receipt of an answer's end, beside the round trip to the broker. */
const receiptWithinMs = 50;

/** The address of a job's answer. */
export interface ReplyTo {
  readonly gateway: string;
  readonly job: string;
}

/**
 * Owns all jobs of this agent and their state. Messages and the clock come in as calls; frames go out, and `JobRunner`
 * runs what is due. Every accepted job ends in exactly one terminal frame. A job id that was seen once is never run
 * again.
 */
export class JobTable {
  /** Every frame of a job is sent through it. */
  readonly uplink: Uplink;
  readonly #options: JobTableOptions;
  readonly #jobs = new Map<string, AgentJob>();
  readonly #runner: JobRunner;
  /**
   * Jobs that are over, or were cancelled before they arrived, by the time until which a late message about them may still
   * be under way. The oldest is the first.
   */
  readonly #pastUntilMs = new Map<string, number>();
  /** Resumable answers that are over, in the order in which they were left. */
  readonly #left = new Map<string, AgentJob>();
  readonly #gateways: GatewaySigns;
  #draining = false;
  #tickedAtMs: number;
  #hearingSinceMs: number;

  constructor(options: JobTableOptions) {
    const { broker, clock, timing } = options;
    this.#options = options;
    this.uplink = new Uplink(options);
    this.#gateways = new GatewaySigns(timing);
    this.#tickedAtMs = this.#hearingSinceMs = clock.now();
    broker.onChange(() => {
      this.#hearingSinceMs = clock.now();
    });
    this.#runner = new JobRunner(options, this.#jobs);
  }

  get load(): JobRunner["load"] {
    return this.#runner.load;
  }

  /** The model that is being loaded for jobs that wait for it. */
  get loading(): LoadNews | undefined {
    return this.#runner.loading;
  }

  receive(head: JobHead, body: Uint8Array, reply: ReplyTo): void {
    const known = this.#jobs.get(head.id);
    if (known !== undefined) {
      this.#accept(known);
      known.frames.repeatTerminal();
      return;
    }
    const { clock, queueMax, runtime, timing } = this.#options;
    const { model } = head;
    const frames = new Outbox(head, { uplink: this.uplink, clock, subject: this.#subjectOf(reply) });
    if (this.#pastUntilMs.has(head.id)) {
      frames.end("fault", { code: "cancelled", message: "The request was cancelled or is over already." });
      return;
    }
    const served = model === undefined ? undefined : runtime.offer?.find(model);
    const reject = (payload: RejectPayload): void => frames.say("reject", payload);
    const rejected = judgeAdmission(head, {
      draining: this.#draining,
      offersModel: served !== undefined,
      managing: head.kind === "manage" ? this.#openOf("manage") : 0,
      counting: head.kind === "count" ? this.#openOf("count") : 0,
      jobs: this.#jobs.size,
      receivingBytes: head.sha256 === undefined ? 0 : this.#receivingBytes(),
    });
    if (rejected !== undefined) return reject(rejected);
    const job = new AgentJob({ head, body, gateway: reply.gateway, frames, served, clock });
    if (head.sha256 !== undefined) job.parts = new PartCollector({ bodyBytes: head.bodyBytes, sha256: head.sha256 });
    if (served === undefined || besideSlots.has(head.kind)) {
      this.#jobs.set(head.id, job);
      job.sayAccepted(undefined);
      if (job.parts === undefined) void this.#runner.runBeside(job);
      return;
    }
    if (!this.#runner.submit(job, served)) {
      return reject(busy(`The machine's queue of ${queueMax} requests is full (queueMax).`));
    }
    this.#jobs.set(head.id, job);
    // Any frame tells the gateway that the job was accepted. A job that is answered soon needs no accept frame.
    if (job.startedAtMs === undefined || timing.acceptHoldMs === 0) this.#accept(job);
    else clock.after(timing.acceptHoldMs, () => void (frames.isSilent && this.#accept(job)));
  }

  receivePart(head: PartHead, bytes: Uint8Array): void {
    const job = this.#jobs.get(head.id);
    if (job === undefined || job.state === "ended") return;
    const { parts } = job;
    if (parts === undefined) {
      // The last `part-ack` was lost, and the gateway goes on asking for it.
      if (job.head.sha256 !== undefined) job.frames.say("part-ack", { received: job.head.bodyBytes });
      return;
    }
    const collected = parts.add(head.offset, bytes);
    job.moved();
    if (collected.outcome === "corrupt") {
      const message = "The request did not reach the machine in one piece.";
      this.#runner.end(job, new Fault("upstream_error", { message, internal: "a body in parts failed its checksum" }));
      return;
    }
    job.frames.say("part-ack", { received: parts.received });
    if (collected.outcome === "incomplete") return;
    job.parts = undefined;
    job.body = collected.body;
    job.state = "queued";
    if (besideSlots.has(job.head.kind)) void this.#runner.runBeside(job);
    else this.#runner.makeReady(job);
  }

  /** Handles one control of a gateway. `reply` is the address to which an attach wants its frames. */
  control(control: Control, reply?: ReplyTo): void {
    if (reply !== undefined && "job" in control && this.#hasLost(control, reply)) return;
    switch (control.kind) {
      case "cancel":
        this.#cancel(control.job, reply);
        return;
      case "finish":
        for (const id of control.jobs) this.#finished(id, control.gateway);
        return;
      case "attach":
        if (reply !== undefined) this.#attach(control, reply);
        return;
      case "credit":
        this.#jobs.get(control.job)?.frames.grant(control);
        return;
      case "lease":
        this.#gateways.leased(control.gateway, this.#options.clock.now());
        for (const [id, bytes] of control.taken ?? []) this.#jobs.get(id)?.frames.taken(bytes);
        for (const [id, tokens] of control.counted ?? []) this.#counted(id, tokens, control.gateway);
        return;
      case "keep":
        this.#runner.keep(control.models);
        return;
      case "probe":
      case "fence":
        // `receiveJobs` answers a probe with a beat, and passes a fence to the claim of the machine's name.
        return;
    }
  }

  /** Notes that the broker found no subscriber for a beat to this gateway. */
  gatewayMissing(gateway: string): void {
    this.#gateways.notFound(gateway, this.#options.clock.now());
  }

  /**
   * Applies the timeouts of jobs and gateways, and repeats terminal frames. The caller calls it once per
   * `beatIntervalMs`.
   */
  tick(): void {
    const { broker, clock, timing, tunnelled } = this.#options;
    const nowMs = clock.now();
    for (const [id, untilMs] of this.#pastUntilMs) {
      if (nowMs < untilMs) break;
      this.#pastUntilMs.delete(id);
    }
    const stoodStill = nowMs - this.#tickedAtMs > timing.probeAfterMs;
    this.#tickedAtMs = nowMs;
    // Messages that came while this process stood still are not read yet, so no gateway was silent.
    if (stoodStill) this.#hearingSinceMs = nowMs;
    for (const job of this.#jobs.values()) {
      const { endedAtMs } = job.frames;
      if (endedAtMs !== undefined) {
        if (nowMs - endedAtMs > timing.terminalRepeatForMs) this.#leave(job);
        else if (nowMs - endedAtMs >= timing.terminalRepeatMs) job.frames.repeatTerminal();
        continue;
      }
      const fault = judgeProgress(job, nowMs, timing);
      if (fault !== undefined) this.#runner.stop(job, fault);
    }
    for (const [id, { leftAtMs = 0 }] of this.#left) if (nowMs - leftAtMs >= timing.resumableForMs) this.#forget(id);
    const waiting = new Set([...this.#jobs.values()].flatMap(({ gateway }) => gateway ?? []));
    const addedMs = addedSilenceMs({ roundTripMs: broker.roundTripMs, tunnelled }, timing);
    const hearing = { connected: broker.connected, sinceMs: this.#hearingSinceMs, addedSilenceMs: addedMs };
    for (const gateway of this.#gateways.gone(waiting, nowMs, hearing)) this.#abandon(gateway);
    this.#runner.tick();
  }

  /** Returns a beat row for every job, by the gateway that waits for it. */
  rows(): ReadonlyMap<string, BeatRow[]> {
    return beatRows([...this.#jobs.values()], this.#runner.places());
  }

  /** Stops taking jobs and resolves when those it has are over. Jobs that still run at the deadline are ended. */
  async drain(deadline: AbortSignal): Promise<void> {
    this.#draining = true;
    const { clock, timing } = this.#options;
    let cutAtMs = Infinity;
    const cut = (): void => {
      cutAtMs = clock.now();
      const fault = new Fault("shutting_down", { message: "The machine shuts down and could not finish in time." });
      for (const job of this.#jobs.values()) this.#runner.stop(job, fault);
    };
    if (deadline.aborted) cut();
    deadline.addEventListener("abort", cut, { once: true });
    const acknowledged = (): boolean => {
      const nowMs = clock.now();
      // An answer that is over may still wait for a slow client, but no longer than this.
      if (nowMs - cutAtMs > timing.terminalRepeatMs * 2) return true;
      return [...this.#jobs.values()].every(
        ({ frames }) => frames.endedAtMs !== undefined && nowMs - frames.endedAtMs > timing.terminalRepeatMs * 2,
      );
    };
    while (this.#jobs.size > 0 && !acknowledged()) {
      await new Promise<void>((resolve) => void clock.after(timing.retryAfterNobodyMs, resolve));
    }
    this.#runner.close();
  }

  #accept(job: AgentJob): void {
    job.sayAccepted(this.#runner.places().get(job));
  }

  #subjectOf(reply: ReplyTo): string {
    return replySubject({ ...reply, machine: this.#options.machine });
  }

  /**
   * Sends the job's frames from number `from` on to `reply`. The gateway misses frames, or another gateway goes on with
   * the request.
   */
  #attach(attach: Attach, reply: ReplyTo): void {
    const { job: id, keyId, resumes } = attach;
    const job = this.#jobs.get(id) ?? this.#left.get(id);
    if (job === undefined || !mayAttach(job, resumes) || (job.head.keyId ?? "") !== keyId) {
      this.#tell(reply, "fault", { code: "job_unknown", message: "The machine does not know this request any more." });
      return;
    }
    if (resumes !== undefined) {
      if (this.#awaitsReceipt(job, reply, () => this.control(attach, reply))) return;
      this.#resume(job, attach, reply);
    }
    job.owner = reply.gateway;
    job.leftAtMs = undefined;
    if (job.frames.attach(attach, this.#subjectOf(reply))) return;
    const message = "Part of the answer was lost between the machine and the gateway.";
    this.#tell(reply, "fault", { code: "stream_gap", message });
  }

  /**
   * Lets an attach wait while the gateway before may have the end of the answer: it then counts all of it, and its receipt
   * is on the way.
   */
  #awaitsReceipt(job: AgentJob, { gateway }: ReplyTo, attach: () => void): boolean {
    const { broker, clock } = this.#options;
    const { endedAtMs = -Infinity } = job.frames;
    const leftMs = endedAtMs + receiptWithinMs + broker.roundTripMs - clock.now();
    const owner = this.#jobs.get(job.head.id)?.gateway;
    if (owner === undefined || owner === gateway || leftMs <= 0) return false;
    clock.after(leftMs, attach);
    return true;
  }

  /**
   * Tells a gateway that it has lost a job to another one, if that is so. It may have slept when the job moved, and never
   * gets it back but by a new request of the client.
   */
  #hasLost(control: Extract<Control, { job: string }>, reply: ReplyTo): boolean {
    const job = this.#jobs.get(control.job) ?? this.#left.get(control.job);
    const lost = job?.lostBy.get(reply.gateway);
    const by = control.kind === "attach" ? control.resumes : undefined;
    if (lost === undefined || (by !== undefined && by !== lost.movedFrom)) return false;
    const message = "The client resumes its answer at another gateway.";
    this.#tell(reply, "fault", { code: "job_moved", message, ...lost });
    return true;
  }

  /** Notes how far a gateway counts a job, as it says several times a second. */
  #counted(id: string, tokens: number, gateway: string): void {
    const job = this.#jobs.get(id);
    if (job?.owner === gateway) job.saidTokens = tokens;
  }

  /**
   * Gives a job to the gateway at which its client resumes it. The gateway before counts as far as it has said. The same
   * gateway tells what it counts, since it drops frames that are still on their way to the request before.
   */
  #resume(job: AgentJob, { resumes: by, countedTokens: countedHere }: Attach, reply: ReplyTo): void {
    const { head, served, state, owner, resumedBy: movedFrom } = job;
    const isSame = owner === reply.gateway;
    // An attach that comes again moves nothing.
    if (by !== movedFrom) {
      job.resumes += 1;
      job.countedTokens = (isSame ? countedHere : undefined) ?? job.countedSoFar;
      job.saidTokens = undefined;
      job.resumedBy = by;
      job.lostBy.delete(reply.gateway);
      if (!isSame) {
        job.lostBy.set(owner, { movedFrom, countedTokens: job.countedTokens });
        this.#hasLost({ kind: "probe", job: head.id }, { ...reply, gateway: owner });
      }
    }
    this.#left.delete(head.id);
    this.#jobs.set(head.id, job);
    const { countedTokens } = job;
    const resumed = head.resumable && { ...head.resumable, model: served?.model.id ?? "", countedTokens };
    this.#tell(reply, "accept", { state, resumed });
  }

  /** Answers an attach with a frame outside the numbering. A fault in it ends no job. */
  #tell(reply: ReplyTo, ...[kind, payload]: ["accept", AcceptPayload] | ["fault", AttachFault]): void {
    this.uplink.publish(this.#subjectOf(reply), encodeFrame({ kind }, encodeJson(payload)));
  }

  /** A cancel without an address comes from a gateway that does not know the job, which a beat told of. */
  #cancel(id: string, from: ReplyTo | undefined): void {
    const job = this.#jobs.get(id);
    if (job === undefined) this.#remember(id);
    // An ended job may still hold bytes that wait for credit.
    else if (job.state === "ended") this.#leave(job);
    else if (from === undefined && job.frames.isResumable) this.#leaveToClient(job);
    else this.#runner.stop(job, new Fault("cancelled", { message: "The request was cancelled." }));
  }

  #abandon(gateway: string): void {
    const abandoned = [...this.#jobs.values()].filter((job) => job.gateway === gateway);
    for (const job of abandoned) {
      if (job.frames.isResumable) this.#leaveToClient(job);
      else {
        this.#runner.stop(job, new Fault("cancelled", { message: "The gateway that asked is gone." }));
        this.#forget(job.head.id);
      }
    }
    if (abandoned.length === 0) return;
    this.#options.log.warn({ gateway, jobs: abandoned.length }, "a gateway is gone; its jobs are cancelled");
  }

  /** Goes on with a job that no gateway waits for, until its client resumes it. */
  #leaveToClient(job: AgentJob): void {
    job.leftAtMs = this.#options.clock.now();
    job.saidTokens = job.countedSoFar;
    job.frames.grant({ taken: 0, limit: limits.resumableBytes });
  }

  /** Handles the receipt of a job's terminal frame. Its gateway has counted all of the answer. */
  #finished(id: string, gateway: string | undefined): void {
    const job = this.#jobs.get(id);
    // A receipt of the gateway before may come while the answer is sent again.
    if (job?.state !== "ended" || job.frames.endedAtMs === undefined || job.owner !== (gateway ?? job.owner)) return;
    job.saidTokens = allTokens;
    this.#leave(job);
  }

  /** Ends the work on a job that is over. A resumable answer is kept for a while. */
  #leave(job: AgentJob): void {
    const { id } = job.head;
    if (!job.frames.isResumable) return this.#forget(id);
    this.#jobs.delete(id);
    this.#remember(id);
    job.leftAtMs ??= this.#options.clock.now();
    this.#left.set(id, job);
    const [oldest = id] = this.#left.keys();
    if (this.#left.size > leftAnswersMax) this.#forget(oldest);
  }

  #forget(id: string): void {
    const job = this.#jobs.get(id) ?? this.#left.get(id);
    job?.frames.release();
    this.#jobs.delete(id);
    this.#left.delete(id);
    this.#remember(id);
  }

  #remember(id: string): void {
    // An id that is added again becomes the newest.
    this.#pastUntilMs.delete(id);
    this.#pastUntilMs.set(id, this.#options.clock.now() + this.#options.timing.cancelRememberMs);
  }

  /** Returns how many jobs of a kind are not over. */
  #openOf(kind: JobKind): number {
    return [...this.#jobs.values()].filter(({ head, state }) => head.kind === kind && state !== "ended").length;
  }

  #receivingBytes(): number {
    return [...this.#jobs.values()].reduce((sum, job) => sum + job.receivingBytes, 0);
  }
}

type Attach = Extract<Control, { kind: "attach" }>;
type AttachFault = FaultPayload & { readonly code: FaultCode };

/** True if the frames of a job can be sent again: to its own gateway, or to one at which its client resumes the answer. */
function mayAttach({ frames, resumes, resumedBy }: AgentJob, by: string | undefined): boolean {
  return by === undefined || (frames.isResumable && (resumes < limits.resumesMax || by === resumedBy));
}
