import { rendererFor } from "#shared/answer/answer-shape.ts";
import type { Broker } from "#shared/broker/broker.ts";
import { faultEntry } from "#shared/fault/fault-code.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { Control } from "#shared/protocol/control.ts";
import { encodeJson, type BeatRow } from "#shared/protocol/frame-payload.ts";
import type { JobHead, PartHead } from "#shared/protocol/job.ts";
import { replySubject } from "#shared/protocol/subjects.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { RuntimeWatch } from "../runtimes/watch-runtime.ts";
import { AgentJob } from "./agent-job.ts";
import { PartCollector } from "./collect-parts.ts";
import { FrameEmitter } from "./emit-frames.ts";
import { busy, judgeAdmission } from "./judge-admission.ts";
import { judgeProgress } from "./judge-progress.ts";
import { MissingGateways } from "./missing-gateways.ts";
import { PastJobs } from "./past-jobs.ts";
import { readChatBody } from "./read-chat-body.ts";
import { runChat } from "./run-job.ts";
import { Schedule } from "./schedule.ts";

interface JobTableOptions {
  readonly broker: Broker;
  readonly runtime: RuntimeWatch;
  readonly machine: string;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
  readonly queueMax: number;
  /** How many jobs run at once, where the operator knows better than the runtime's adapter. */
  readonly slots?: number | undefined;
}

/** Where a job's answer goes. */
export interface ReplyTo {
  readonly gateway: string;
  readonly job: string;
}

/**
 * All jobs of this agent: the one owner of their state. Messages, the runtime and the clock come in as calls; frames
 * go out. Every job that is accepted ends in exactly one terminal frame, and a job id that was seen once is never run
 * again.
 */
export class JobTable {
  readonly #options: JobTableOptions;
  readonly #jobs = new Map<string, AgentJob>();
  readonly #past: PastJobs;
  readonly #missing: MissingGateways;
  readonly #schedule: Schedule;
  #receivingBytes = 0;
  #draining = false;

  constructor(options: JobTableOptions) {
    this.#options = options;
    this.#past = new PastJobs(options.timing.cancelRememberMs);
    this.#missing = new MissingGateways(options.timing);
    this.#schedule = new Schedule({ slots: options.slots ?? 1, queueMax: options.queueMax });
    options.runtime.onChange(() => this.#resize());
  }

  get load(): { slots: number; running: number; queued: number; queueMax: number } {
    const { slots, running, queued } = this.#schedule;
    return { slots, running, queued, queueMax: this.#options.queueMax };
  }

  receive(head: JobHead, body: Uint8Array, reply: ReplyTo): void {
    const known = this.#jobs.get(head.id);
    if (known !== undefined) {
      known.frames.say("accept", known.accepted(this.#schedule.places().get(head.id)));
      known.frames.repeatTerminal();
      return;
    }
    const frames = this.#framesTo(reply);
    if (this.#past.has(head.id)) {
      frames.fault({ code: "cancelled", message: "The request was cancelled or is over already." });
      return;
    }
    const rejected = judgeAdmission(head, {
      draining: this.#draining,
      catalogue: this.#options.runtime.offer?.catalogue,
      jobs: this.#jobs.size,
      receivingBytes: this.#receivingBytes,
    });
    if (rejected !== undefined) {
      frames.say("reject", rejected);
      return;
    }
    const nowMs = this.#options.clock.now();
    const state = head.sha256 === undefined ? "queued" : "receiving";
    const job = new AgentJob({ head, gateway: reply.gateway, frames, state, nowMs });
    if (head.kind === "models") {
      this.#jobs.set(head.id, job);
      frames.say("accept", job.accepted(undefined));
      void this.#tellModels(job);
      return;
    }
    const submitted = this.#schedule.submit(head.id, { ready: state === "queued" });
    if (submitted.outcome === "full") {
      frames.say("reject", busy(`The machine's queue of ${this.#options.queueMax} requests is full (queueMax).`));
      return;
    }
    this.#jobs.set(head.id, job);
    if (head.sha256 === undefined) job.body = body;
    else {
      job.parts = new PartCollector({ bodyBytes: head.bodyBytes, sha256: head.sha256 });
      job.reservedBytes = head.bodyBytes;
      this.#receivingBytes += head.bodyBytes;
    }
    frames.say("accept", job.accepted(this.#schedule.places().get(head.id)));
    this.#start(submitted.start);
  }

  receivePart(head: PartHead, bytes: Uint8Array): void {
    const job = this.#jobs.get(head.id);
    if (job === undefined || job.state === "ended") return;
    const { parts } = job;
    if (parts === undefined) {
      // The last acknowledgement was lost, and the sender goes on asking for it.
      if (job.head.sha256 !== undefined) job.frames.say("part-ack", { received: job.head.bodyBytes });
      return;
    }
    const collected = parts.add(head.offset, bytes);
    job.moved(this.#options.clock.now());
    if (collected.outcome === "corrupt") {
      const message = "The request did not reach the machine in one piece.";
      this.#end(job, new Fault("upstream_error", { message, internal: "a body in parts failed its checksum" }));
      return;
    }
    job.frames.say("part-ack", { received: parts.received });
    if (collected.outcome === "incomplete") return;
    job.parts = undefined;
    job.body = collected.body;
    job.state = "queued";
    this.#start(this.#schedule.makeReady(head.id));
  }

  control(control: Control): void {
    switch (control.kind) {
      case "cancel":
        this.#cancel(control.job);
        return;
      case "finish":
        for (const id of control.jobs) if (this.#jobs.get(id)?.state === "ended") this.#forget(id);
        return;
      case "probe":
      case "attach":
      case "credit":
      case "lease":
      case "fence":
        // A probe is answered by the beat that `receiveJobs` asks for. The others belong to a fleet of several
        // gateways and machines under faults; no gateway of this version sends them.
        return;
    }
  }

  /** The broker found nobody to give a beat to. */
  gatewayMissing(gateway: string): void {
    this.#missing.notFound(gateway, this.#options.clock.now());
  }

  /** What time does to jobs: to be called at the pace of the beats. */
  tick(): void {
    const { clock, timing } = this.#options;
    const nowMs = clock.now();
    this.#past.forgetOld(nowMs);
    for (const job of this.#jobs.values()) {
      if (job.endedAtMs !== undefined) {
        if (nowMs - job.endedAtMs > timing.terminalRepeatForMs) this.#forget(job.head.id);
        else if (nowMs - job.endedAtMs >= timing.terminalRepeatMs) job.frames.repeatTerminal();
        continue;
      }
      const fault = judgeProgress(job, nowMs, timing);
      if (fault !== undefined) this.#stop(job, fault);
    }
    for (const gateway of this.#missing.gone(nowMs)) this.#abandon(gateway);
  }

  /** A row for every job, by the gateway that waits for it. */
  rows(): Map<string, BeatRow[]> {
    const places = this.#schedule.places();
    const rows = new Map<string, BeatRow[]>();
    for (const job of this.#jobs.values()) {
      const row: BeatRow = [
        job.head.id,
        job.state,
        places.get(job.head.id) ?? 0,
        job.progress,
        job.frames.lastSequence,
        0,
      ];
      const others = rows.get(job.gateway);
      if (others === undefined) rows.set(job.gateway, [row]);
      else others.push(row);
    }
    return rows;
  }

  /** Takes no more jobs, and resolves when those it has are over; what is not by the deadline is ended. */
  async drain(deadline: AbortSignal): Promise<void> {
    this.#draining = true;
    const { clock, timing } = this.#options;
    const cut = (): void => {
      for (const job of this.#jobs.values()) {
        this.#stop(
          job,
          new Fault("shutting_down", { message: "The machine shuts down and could not finish in time." }),
        );
      }
    };
    if (deadline.aborted) cut();
    deadline.addEventListener("abort", cut, { once: true });
    const acknowledged = (): boolean => {
      const nowMs = clock.now();
      return [...this.#jobs.values()].every(
        (job) => job.endedAtMs !== undefined && nowMs - job.endedAtMs > timing.terminalRepeatMs * 2,
      );
    };
    while (this.#jobs.size > 0 && !acknowledged()) {
      await new Promise<void>((resolve) => void clock.after(timing.retryAfterNobodyMs, resolve));
    }
  }

  #framesTo(reply: ReplyTo): FrameEmitter {
    const { broker, machine } = this.#options;
    return new FrameEmitter({ broker, subject: replySubject({ ...reply, machine }) });
  }

  #start(ids: readonly string[]): void {
    for (const id of ids) {
      const job = this.#jobs.get(id);
      if (job !== undefined) void this.#run(job);
    }
  }

  async #run(job: AgentJob): Promise<void> {
    const { clock, log, runtime } = this.#options;
    job.state = "prefill";
    job.startedAtMs = clock.now();
    job.moved(job.startedAtMs);
    try {
      const { head } = job;
      const { offer } = runtime;
      const renderer = rendererFor(head.shape, {
        id: head.responseId ?? head.id,
        createdSeconds: head.createdSeconds ?? 0,
        model: head.model ?? "",
        includeUsage: head.includeUsage ?? false,
      });
      if (offer === undefined || renderer === undefined || job.body === undefined || head.model === undefined) {
        throw new Fault("runtime_offline", { message: "The model server on the GPU machine does not answer." });
      }
      const body = readChatBody(job.body);
      job.body = undefined;
      this.#releaseBody(job);
      const outcome = await runChat({
        runtime: offer.runtime,
        model: head.model,
        body,
        renderer,
        signal: job.signal,
        onProgress: () => job.moved(clock.now()),
        write: (bytes, outputTokens) => {
          if (job.state === "prefill") {
            job.state = "running";
            job.firstTokenAtMs = clock.now();
          }
          job.frames.write(bytes, outputTokens);
        },
      });
      job.end(outcome, clock.now());
      if (outcome.outcome === "fault") this.#logFault(job, outcome.fault);
    } catch (thrown) {
      this.#end(job, Fault.from(thrown));
    } finally {
      log.debug({ job: job.head.id, state: job.state }, "job over");
      this.#start(this.#schedule.remove(job.head.id));
    }
  }

  async #tellModels(job: AgentJob): Promise<void> {
    try {
      const catalogue = await this.#options.runtime.ask();
      job.frames.write(encodeJson(catalogue), 0);
      job.end({ outcome: "end", finishReason: undefined, usage: undefined }, this.#options.clock.now());
    } catch (thrown) {
      this.#end(job, Fault.from(thrown));
    }
  }

  #cancel(id: string): void {
    const job = this.#jobs.get(id);
    if (job === undefined) {
      this.#past.add(id, this.#options.clock.now());
      return;
    }
    this.#stop(job, new Fault("cancelled", { message: "The request was cancelled." }));
  }

  /** Ends a job wherever it stands: what runs is aborted and reports by itself, what waits ends here. */
  #stop(job: AgentJob, fault: Fault): void {
    job.abort(fault);
    if (job.state !== "ended" && job.startedAtMs === undefined) this.#end(job, fault);
  }

  #end(job: AgentJob, fault: Fault): void {
    if (job.state === "ended") return;
    this.#releaseBody(job);
    job.end({ outcome: "fault", fault, usage: undefined }, this.#options.clock.now());
    this.#logFault(job, fault);
    this.#start(this.#schedule.remove(job.head.id));
  }

  /** A body that came in parts counts from its first part until its job has begun or ended. */
  #releaseBody(job: AgentJob): void {
    this.#receivingBytes -= job.reservedBytes;
    job.reservedBytes = 0;
  }

  #abandon(gateway: string): void {
    let abandoned = 0;
    for (const job of this.#jobs.values()) {
      if (job.gateway !== gateway) continue;
      abandoned += 1;
      this.#stop(job, new Fault("cancelled", { message: "The gateway that asked is gone." }));
      this.#forget(job.head.id);
    }
    if (abandoned > 0)
      this.#options.log.warn({ gateway, jobs: abandoned }, "a gateway is gone; its jobs are cancelled");
  }

  #forget(id: string): void {
    this.#jobs.delete(id);
    this.#past.add(id, this.#options.clock.now());
  }

  #resize(): void {
    const slots = this.#options.slots ?? this.#options.runtime.offer?.runtime.slots;
    if (slots !== undefined && slots !== this.#schedule.slots) this.#start(this.#schedule.resize(slots));
  }

  #logFault(job: AgentJob, fault: Fault): void {
    const fields = { job: job.head.id, code: fault.code, internal: fault.internal };
    if (fault.code === "cancelled") this.#options.log.debug(fields, "job cancelled");
    else if (faultEntry(fault.code).status < 500) this.#options.log.info(fields, "job refused");
    else this.#options.log.warn(fields, "job failed");
  }
}
