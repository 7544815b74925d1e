import type { Broker } from "#shared/broker/broker.ts";
import { Fault } from "#shared/fault/fault.ts";
import { sleep } from "#shared/process/clock.ts";
import type { Attach, Control, JobHead, PartHead } from "#shared/protocol/job.ts";
import type { BeatRow, RejectPayload } from "#shared/protocol/frame-payload.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { ReplyAddress } from "#shared/protocol/subjects.ts";
import type { ServedModel } from "../models/model-set.ts";
import { JobAttacher } from "./attach-jobs.ts";
import { Job } from "./job.ts";
import { JobRunner, type RunnerOptions } from "./run-jobs.ts";
import { Uplink } from "./uplink.ts";

type JobsOptions = RunnerOptions & { readonly broker: Broker };

/** Bounds the `manage` jobs at once: models that are pulled, removed, loaded or unloaded. */
const manageJobsMax = 8;

/** Bounds the `count` jobs at once. They take no slot, and run beside the answers. */
const countJobsMax = 32;

/** Bounds the ended answers that are kept for clients that may resume them; the oldest are dropped first. */
const keptAnswersMax = 64;

/**
 * Owns all jobs of this agent, and passes messages and the clock to the job that they concern. `JobRunner` runs what is due.
 * Every accepted job ends in exactly one terminal frame. A job id that was seen once is never run again.
 */
export class Jobs {
  /** Every frame of a job is sent through it. */
  readonly uplink: Uplink;
  readonly #options: JobsOptions;
  readonly runner: JobRunner;
  readonly #attacher: JobAttacher;
  readonly #jobs = new Map<string, Job>();
  /** Resumable answers that are over, in the order in which they were left. */
  readonly #kept = new Map<string, Job>();
  /**
   * Jobs that are over, or were cancelled before they arrived, by the time until which a late message about them may still
   * be under way. The oldest is the first.
   */
  readonly #pastUntilMs = new Map<string, number>();
  #isDraining = false;

  constructor(options: JobsOptions) {
    this.#options = options;
    this.uplink = new Uplink(options);
    this.#attacher = new JobAttacher({ ...options, uplink: this.uplink });
    this.runner = new JobRunner(options);
  }

  receive(head: JobHead, body: Uint8Array, reply: ReplyAddress): void {
    const known = this.#jobs.get(head.id);
    if (known !== undefined) {
      this.#accept(known);
      known.outbox.repeatTerminal();
      return;
    }
    const { clock, runtime, timing } = this.#options;
    const served = head.model === undefined ? undefined : runtime.offer?.byId.get(head.model);
    const job = new Job(head, { body, reply, served, uplink: this.uplink, clock });
    const { outbox } = job;
    if (this.#pastUntilMs.has(head.id)) {
      const message = "The request was cancelled or is over already.";
      return outbox.end("fault", { code: "cancelled", message });
    }
    const isQueued = served !== undefined && job.takesSlot;
    const refusal = this.#refusalOf(head, served) ?? (isQueued ? this.runner.submit(job, served) : undefined);
    if (refusal !== undefined) return outbox.say("reject", refusal);
    this.#jobs.set(head.id, job);
    // Any frame tells the gateway that the job was accepted. A job that is answered soon needs no accept frame.
    if (job.startedAtMs !== undefined && timing.acceptHoldMs > 0) {
      clock.after(timing.acceptHoldMs, () => void (outbox.isSilent && this.#accept(job)));
      return;
    }
    this.#accept(job);
    if (isQueued) this.runner.look();
    else if (job.state !== "receiving") void this.runner.runBeside(job);
  }

  receivePart(head: PartHead, bytes: Uint8Array): void {
    const job = this.#jobs.get(head.id);
    if (job === undefined || job.state === "ended") return;
    const outcome = job.takePart(head.offset, bytes);
    if (outcome === "whole") this.runner.bodyCame(job);
    if (outcome !== "corrupt") return;
    const message = "The request did not reach the machine in one piece.";
    this.runner.stop(job, new Fault("upstream_error", { message, internal: "a body in parts failed its checksum" }));
  }

  /** Handles one control of a gateway. `reply` is the address to which an attach wants its frames. */
  control(control: Control, reply?: ReplyAddress): void {
    if (reply !== undefined && "job" in control) {
      const request = control.kind === "attach" ? control.resumes : undefined;
      if (this.#attacher.tellLost(this.#find(control.job), reply, request)) return;
    }
    switch (control.kind) {
      case "cancel":
        return this.#cancel(control.job, reply);
      case "finish":
        for (const id of control.jobs) this.#finished(id, control.gateway);
        return;
      case "attach":
        return reply && this.#attach(control, reply);
      case "credit":
        return this.#jobs.get(control.job)?.outbox.grant(control);
      case "lease":
        for (const [id, taken] of control.taken ?? []) this.#jobs.get(id)?.outbox.grant({ taken });
        for (const [id, tokens] of control.counted ?? []) {
          const job = this.#jobs.get(id);
          // A gateway that lost the answer counts no further.
          if (job?.owner === control.gateway) job.counts?.said(tokens);
        }
        return;
      case "keep":
        return this.runner.models.keep(control.models);
      case "probe":
      case "fence":
        // `JobReceiver` answers a probe with a beat, and passes a fence to the claim of the machine's name.
        return;
    }
  }

  /**
   * Applies the time limits of jobs, ends the work for gateways that are `gone`, and repeats terminal frames. The caller calls
   * it once per `beatIntervalMs`.
   */
  tick(gone: readonly string[]): void {
    const { clock, timing } = this.#options;
    const nowMs = clock.now();
    for (const [id, untilMs] of this.#pastUntilMs) {
      if (nowMs < untilMs) break;
      this.#pastUntilMs.delete(id);
    }
    for (const job of this.#jobs.values()) {
      const { endedAtMs = Infinity } = job.outbox;
      if (nowMs - endedAtMs > timing.terminalRepeatForMs) this.#leave(job);
      else if (nowMs - endedAtMs >= timing.terminalRepeatMs) job.outbox.repeatTerminal();
      const fault = job.overdue(nowMs, timing);
      if (fault !== undefined) this.runner.stop(job, fault);
    }
    for (const job of this.#kept.values())
      if (nowMs - (job.leftAtMs ?? nowMs) >= timing.resumableForMs) this.#forget(job);
    for (const gateway of gone) this.#abandon(gateway);
    this.runner.tick();
  }

  /** Returns the gateways that wait for jobs. */
  gateways(): ReadonlySet<string> {
    return new Set([...this.#jobs.values()].flatMap(({ waiting }) => waiting ?? []));
  }

  /** Returns a beat row for every job, by the gateway that waits for it. */
  rows(): ReadonlyMap<string, BeatRow[]> {
    const rows = new Map<string, BeatRow[]>();
    const positions = this.runner.positions();
    for (const job of this.#jobs.values()) {
      const { head, state, outbox, waiting } = job;
      if (waiting === undefined) continue;
      // The end of an answer may wait behind bytes that are ahead of the credit.
      const shown = state === "ended" && outbox.endedAtMs === undefined ? "running" : state;
      const { outputTokens, lastSequence, credit } = outbox;
      const row: BeatRow = [head.id, shown, positions.get(job) ?? 0, outputTokens, lastSequence, credit];
      rows.getOrInsertComputed(waiting, () => []).push(row);
    }
    return rows;
  }

  /** Stops taking jobs and resolves when those it has are over. Jobs that still run at the deadline are ended. */
  async drain(deadline: AbortSignal): Promise<void> {
    this.#isDraining = true;
    const { clock, timing } = this.#options;
    let cutAtMs = Infinity;
    const cut = (): void => {
      cutAtMs = clock.now();
      const fault = new Fault("shutting_down", { message: "The machine shuts down and could not finish in time." });
      for (const job of this.#jobs.values()) this.runner.stop(job, fault);
    };
    if (deadline.aborted) cut();
    deadline.addEventListener("abort", cut, { once: true });
    // A gateway may not take the end of an answer, and its client may read slowly: neither is waited for much longer.
    const isLong = (sinceMs: number): boolean => clock.now() - sinceMs > timing.terminalRepeatMs * 2;
    const isOver = (): boolean =>
      isLong(cutAtMs) || [...this.#jobs.values()].every(({ outbox }) => isLong(outbox.endedAtMs ?? Infinity));
    while (!isOver()) await sleep(clock, timing.retryAfterNobodyMs);
    this.runner.models.close();
  }

  /** Returns why the agent rejects a job, or undefined when it accepts it. Only hard facts count, no predictions. */
  #refusalOf({ kind, sha256, bodyBytes }: JobHead, served: ServedModel | undefined): RejectPayload | undefined {
    if (this.#isDraining) return { reason: "draining", message: "The machine shuts down." };
    if (kind === "models") return undefined;
    const openOfKind = (): number =>
      [...this.#jobs.values()].filter(({ head, state }) => head.kind === kind && state !== "ended").length;
    if (kind === "manage") {
      return openOfKind() < manageJobsMax
        ? undefined
        : busy(`The machine is busy with the models of ${manageJobsMax} other requests already (manageJobsMax).`);
    }
    if (served === undefined) return { reason: "unknown_model", message: "The machine does not offer this model." };
    if (kind === "count" && openOfKind() >= countJobsMax) {
      return busy(`The machine counts the tokens of ${countJobsMax} requests already (countJobsMax).`);
    }
    const { jobsPerAgentMax, receivingBytesMax } = limits;
    if (this.#jobs.size >= jobsPerAgentMax) {
      return busy(`The machine holds ${jobsPerAgentMax} requests already (jobsPerAgentMax).`);
    }
    if (sha256 === undefined) return undefined;
    const receivingBytes = [...this.#jobs.values()].reduce((sum, job) => sum + job.receivingBytes, 0);
    return receivingBytes + bodyBytes > receivingBytesMax
      ? busy(`The machine is receiving ${receivingBytesMax} bytes of requests already (receivingBytesMax).`)
      : undefined;
  }

  #accept(job: Job): void {
    job.accept(this.runner.positions().get(job));
  }

  /** Returns a job, also one whose answer is over and kept. */
  #find(id: string): Job | undefined {
    return this.#jobs.get(id) ?? this.#kept.get(id);
  }

  #attach(attach: Attach, reply: ReplyAddress): void {
    const job = this.#find(attach.job);
    // A request may lose the answer while its attach waits, so the attach comes in anew.
    const isThere = this.#attacher.attach(job, attach, reply, () => this.control(attach, reply));
    if (job === undefined || !isThere) return;
    this.#kept.delete(attach.job);
    this.#jobs.set(attach.job, job);
  }

  /** A cancel without an address comes from a gateway that does not know the job, which a beat told of. */
  #cancel(id: string, from: ReplyAddress | undefined): void {
    const job = this.#jobs.get(id);
    if (job === undefined) this.#remember(id);
    // An ended job may still hold bytes that wait for credit.
    else if (job.state === "ended") this.#leave(job);
    else if (from === undefined && job.outbox.isResumable) this.#leaveToClient(job);
    else this.runner.stop(job, new Fault("cancelled", { message: "The request was cancelled." }));
  }

  #abandon(gateway: string): void {
    const abandoned = [...this.#jobs.values()].filter(({ waiting }) => waiting === gateway);
    for (const job of abandoned) {
      if (job.outbox.isResumable) this.#leaveToClient(job);
      else {
        this.runner.stop(job, new Fault("cancelled", { message: "The gateway that asked is gone." }));
        this.#forget(job);
      }
    }
    this.#options.log.warn({ gateway, jobs: abandoned.length }, "a gateway is gone; its jobs are cancelled");
  }

  /** Goes on with a job that no gateway waits for, until its client resumes it. */
  #leaveToClient(job: Job): void {
    job.leave();
    job.counts?.ownerLeft(job.outbox.sentTokens);
    job.outbox.grant({ taken: 0, limit: limits.resumableBytes });
  }

  /** Handles the receipt of a job's terminal frame. Its gateway has counted all of the answer. */
  #finished(id: string, gateway: string | undefined): void {
    const job = this.#jobs.get(id);
    if (job?.state !== "ended" || job.outbox.endedAtMs === undefined) return;
    // A receipt of the gateway before may come while the answer is sent again.
    if (gateway !== undefined && gateway !== job.owner) return;
    job.counts?.said();
    this.#leave(job);
  }

  /** Ends the work on a job that is over. A resumable answer is kept for a while. */
  #leave(job: Job): void {
    if (!job.outbox.isResumable) return this.#forget(job);
    const { id } = job.head;
    this.#jobs.delete(id);
    this.#kept.set(id, job);
    this.#remember(id);
    job.leave();
    const [oldest = job] = this.#kept.values();
    if (this.#kept.size > keptAnswersMax) this.#forget(oldest);
  }

  #forget({ head: { id }, outbox }: Job): void {
    outbox.release();
    this.#jobs.delete(id);
    this.#kept.delete(id);
    this.#remember(id);
  }

  #remember(id: string): void {
    // An id that is added again becomes the newest.
    this.#pastUntilMs.delete(id);
    this.#pastUntilMs.set(id, this.#options.clock.now() + this.#options.timing.cancelRememberMs);
  }
}

function busy(message: string): RejectPayload {
  return { reason: "busy", message };
}
