import type { Broker } from "#shared/broker/broker.ts";
import { type FaultCode, Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { Control } from "#shared/protocol/control.ts";
import { jsonRecord } from "#shared/protocol/answer-events.ts";
import { encodeJson, type BeatRow, type FaultPayload } from "#shared/protocol/frame-payload.ts";
import { encodeFrame } from "#shared/protocol/frame.ts";
import type { JobHead, PartHead } from "#shared/protocol/job.ts";
import type { ManageAction } from "#shared/protocol/job-bodies.ts";
import { replySubject } from "#shared/protocol/subjects.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { Runtime } from "../runtimes/runtime.ts";
import type { RuntimeWatch } from "../machine/watch-runtimes.ts";
import type { RuntimeWork } from "../machine/watch-source.ts";
import { AgentJob } from "./agent-job.ts";
import { beatRows, GatewaySigns } from "./beats.ts";
import { PartCollector } from "./receive-jobs.ts";
import { FrameEmitter } from "./emit-frames.ts";
import { HeldAccepts } from "./hold-accepts.ts";
import { busy, judgeAdmission, judgeProgress } from "./judge-job.ts";
import { Lanes } from "./lanes.ts";
import { logOutcome, type Outcome, PastJobs } from "./past-jobs.ts";
import { manageModels } from "./manage-models.ts";
import { runJob } from "./run-job.ts";
import { Uplink } from "./uplink.ts";
import { StrayWatch } from "./watch-strays.ts";

interface JobTableOptions {
  readonly broker: Broker;
  readonly runtime: RuntimeWatch;
  readonly machine: string;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
  readonly queueMax: number;
  /** The model actions that this machine's owner allows operators. */
  readonly manage: ReadonlySet<ManageAction>;
}

/** The address of a job's answer. */
export interface ReplyTo {
  readonly gateway: string;
  readonly job: string;
}

/**
 * Owns all jobs of this agent and their state. Messages, the runtime and the clock come in as calls; frames go out.
 * Every accepted job ends in exactly one terminal frame. A job id that was seen once is never run again.
 */
export class JobTable {
  /** Every frame of a job is sent through it. */
  readonly uplink: Uplink;
  readonly #options: JobTableOptions;
  readonly #jobs = new Map<string, AgentJob>();
  readonly #past: PastJobs;
  readonly #gateways: GatewaySigns;
  readonly #lanes: Lanes;
  readonly #strays: StrayWatch;
  readonly #accepts: HeldAccepts;
  #receivingBytes = 0;
  #draining = false;
  #tickedAtMs: number;
  #hearingSinceMs: number;

  constructor(options: JobTableOptions) {
    this.#options = options;
    this.uplink = new Uplink(options);
    this.#past = new PastJobs(options.timing.cancelRememberMs);
    this.#gateways = new GatewaySigns(options.timing);
    this.#tickedAtMs = options.clock.now();
    this.#hearingSinceMs = options.clock.now();
    options.broker.onChange(() => {
      this.#hearingSinceMs = options.clock.now();
    });
    this.#lanes = new Lanes(options);
    this.#strays = new StrayWatch({ ...options, ownRunning: (runtime) => this.#runningOn(runtime) });
    this.#accepts = new HeldAccepts({
      clock: options.clock,
      holdMs: options.timing.acceptHoldMs,
      tell: (job) => this.#accept(job),
    });
    options.runtime.heedWork((runtime) => this.#workOn(runtime));
    options.runtime.onChange(() => this.#start(this.#lanes.resize([...this.#jobs.values()])));
  }

  get load(): { slots: number; running: number; queued: number; queueMax: number; strays: number } {
    const { runtime, queueMax } = this.#options;
    const { running, queued } = this.#lanes;
    return { slots: runtime.offer?.slots ?? 0, running, queued, queueMax, strays: this.#strays.strays };
  }

  receive(head: JobHead, body: Uint8Array, reply: ReplyTo): void {
    const known = this.#jobs.get(head.id);
    if (known !== undefined) {
      this.#accept(known);
      known.frames.repeatTerminal();
      return;
    }
    const frames = this.#framesTo(reply, head);
    if (this.#past.has(head.id)) {
      frames.fault({ code: "cancelled", message: "The request was cancelled or is over already." });
      return;
    }
    const route = head.model === undefined ? undefined : this.#options.runtime.offer?.route(head.model);
    const rejected = judgeAdmission(head, {
      draining: this.#draining,
      offersModel: route !== undefined,
      managing: head.kind === "manage" ? this.#managing() : 0,
      jobs: this.#jobs.size,
      receivingBytes: this.#receivingBytes,
    });
    if (rejected !== undefined) {
      frames.say("reject", rejected);
      return;
    }
    const nowMs = this.#options.clock.now();
    const state = head.sha256 === undefined ? "queued" : "receiving";
    const job = new AgentJob({ head, gateway: reply.gateway, frames, state, route, nowMs });
    if (route === undefined || head.kind === "models" || head.kind === "manage") {
      this.#jobs.set(head.id, job);
      job.body = body;
      frames.say("accept", job.accepted(undefined));
      void (head.kind === "manage" ? this.#manage(job) : this.#tellModels(job));
      return;
    }
    const submitted = this.#lanes.submit(head.id, route, { sender: head.keyId ?? "", ready: state === "queued" });
    if (submitted.outcome === "full") {
      this.#start(submitted.start);
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
    // A job that has to wait in the queue is accepted at once.
    if (submitted.start.includes(head.id)) this.#accepts.hold(job);
    else this.#accept(job);
    this.#start(submitted.start);
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
    this.#start(this.#lanes.makeReady(head.id));
  }

  /** Handles one control of a gateway. `reply` is the address to which an attach wants its frames. */
  control(control: Control, reply?: ReplyTo): void {
    switch (control.kind) {
      case "cancel":
        this.#cancel(control.job);
        return;
      case "finish":
        for (const id of control.jobs) if (this.#jobs.get(id)?.state === "ended") this.#forget(id);
        return;
      case "attach":
        if (reply !== undefined) this.#attach(control, reply);
        return;
      case "credit": {
        const job = this.#jobs.get(control.job);
        job?.frames.grant(control);
        return;
      }
      case "lease":
        this.#gateways.leased(control.gateway, this.#options.clock.now());
        for (const [id, bytes] of control.taken ?? []) this.#jobs.get(id)?.frames.taken(bytes);
        return;
      case "probe":
      case "fence":
        // `receiveJobs` answers a probe with a beat; `claimMachine` subscribes to fences itself.
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
    const { clock, timing } = this.#options;
    const nowMs = clock.now();
    this.#past.forgetOld(nowMs);
    const stoodStill = nowMs - this.#tickedAtMs > timing.probeAfterMs;
    this.#tickedAtMs = nowMs;
    // Messages that came while this process stood still are not read yet, so no gateway was silent.
    if (stoodStill) this.#hearingSinceMs = nowMs;
    for (const job of this.#jobs.values()) {
      const { endedAtMs } = job.frames;
      if (endedAtMs !== undefined) {
        if (nowMs - endedAtMs > timing.terminalRepeatForMs) this.#forget(job.head.id);
        else if (nowMs - endedAtMs >= timing.terminalRepeatMs) job.frames.repeatTerminal();
        continue;
      }
      const fault = judgeProgress(job, nowMs, timing);
      if (fault !== undefined) this.#stop(job, fault);
    }
    const waiting = new Set([...this.#jobs.values()].map(({ gateway }) => gateway));
    const hearing = { connected: this.#options.broker.connected, sinceMs: this.#hearingSinceMs };
    for (const gateway of this.#gateways.gone(waiting, nowMs, hearing)) this.#abandon(gateway);
    this.#start(this.#lanes.resize([...this.#jobs.values()]));
    this.#strays.tick();
  }

  /** Returns a beat row for every job, by the gateway that waits for it. */
  rows(): ReadonlyMap<string, BeatRow[]> {
    return beatRows([...this.#jobs.values()], this.#lanes.places());
  }

  /** Stops taking jobs and resolves when those it has are over. Jobs that still run at the deadline are ended. */
  async drain(deadline: AbortSignal): Promise<void> {
    this.#draining = true;
    const { clock, timing } = this.#options;
    let cutAtMs = Infinity;
    const cut = (): void => {
      cutAtMs = clock.now();
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
      // An answer that is over may still wait for a slow client, but no longer than this.
      if (nowMs - cutAtMs > timing.terminalRepeatMs * 2) return true;
      return [...this.#jobs.values()].every(
        ({ frames }) => frames.endedAtMs !== undefined && nowMs - frames.endedAtMs > timing.terminalRepeatMs * 2,
      );
    };
    while (this.#jobs.size > 0 && !acknowledged()) {
      await new Promise<void>((resolve) => void clock.after(timing.retryAfterNobodyMs, resolve));
    }
  }

  #accept(job: AgentJob): void {
    job.frames.say("accept", job.accepted(this.#lanes.places().get(job.head.id)));
  }

  #framesTo(reply: ReplyTo, { credit, whole }: JobHead): FrameEmitter {
    const { clock, machine } = this.#options;
    return new FrameEmitter({
      uplink: this.uplink,
      clock,
      subject: replySubject({ ...reply, machine }),
      credit,
      whole,
    });
  }

  /**
   * Sends the job's frames from number `from` on to `reply`. The gateway misses frames, or another gateway goes on with
   * the request.
   */
  #attach({ job: id, from, keyId, credit }: Extract<Control, { kind: "attach" }>, reply: ReplyTo): void {
    const job = this.#jobs.get(id);
    if (job === undefined || (job.head.keyId ?? "") !== keyId) {
      this.#refuseAttach(reply, "job_unknown", "The machine does not know this request any more.");
      return;
    }
    job.gateway = reply.gateway;
    const { machine } = this.#options;
    if (job.frames.attach({ subject: replySubject({ ...reply, machine }), from, credit })) return;
    this.#refuseAttach(reply, "stream_gap", "Part of the answer was lost between the machine and the gateway.");
  }

  /** Answers an attach with a fault frame outside the numbering, which ends no job. */
  #refuseAttach(reply: ReplyTo, code: FaultCode, message: string): void {
    const { machine } = this.#options;
    const payload: FaultPayload = { code, message };
    this.uplink.publish(replySubject({ ...reply, machine }), encodeFrame({ kind: "fault" }, encodeJson(payload)));
  }

  #start(ids: readonly string[]): void {
    for (const id of ids) {
      const job = this.#jobs.get(id);
      if (job !== undefined) void this.#run(job);
    }
  }

  async #run(job: AgentJob): Promise<void> {
    const { clock, runtime } = this.#options;
    job.state = "prefill";
    job.startedAtMs = clock.now();
    job.moved(job.startedAtMs);
    try {
      // The runtime may have come and gone while the job was queued.
      const route = runtime.offer?.route(job.head.model ?? "");
      if (route === undefined) throw runtimeOffline();
      job.route = route;
      this.#releaseBody(job);
      const outcome = await runJob({
        head: job.head,
        body: bodyOf(job),
        route,
        signal: job.signal,
        onProgress: (silence) => job.moved(clock.now(), silence),
        onWidth: (width) => {
          job.width = width;
        },
        write: (records, outputTokens) => {
          const nowMs = clock.now();
          job.moved(nowMs, job.silence);
          if (records.length > 0) job.spoke(nowMs, outputTokens);
          return this.#heldBack(job, job.frames.write(records, outputTokens));
        },
      });
      if (wasTooMuch(job, outcome) && this.#lanes.refused(route)) {
        this.#putBack(job);
        return;
      }
      this.#conclude(job, outcome);
    } catch (thrown) {
      this.#end(job, Fault.from(thrown));
    }
    this.#start(this.#lanes.remove(job.head.id));
    if (job.signal.aborted && job.route !== undefined) this.#strays.cancelled(job.route.runtime, job.width);
  }

  #heldBack(job: AgentJob, room: Promise<void> | undefined): Promise<void> | undefined {
    return room === undefined ? undefined : this.#holdBack(job, room);
  }

  async #holdBack(job: AgentJob, room: Promise<void>): Promise<void> {
    job.heldBack = true;
    await room;
    job.heldBack = false;
    job.moved(this.#options.clock.now(), job.silence);
  }

  /** Queues a job again that its runtime had no room for. It is retried when another job on that runtime has ended. */
  #putBack(job: AgentJob): void {
    job.state = "queued";
    job.startedAtMs = undefined;
    this.#start(this.#lanes.putBack(job.head.id));
  }

  async #tellModels(job: AgentJob): Promise<void> {
    try {
      const catalogue = await this.#options.runtime.ask();
      void job.frames.write([jsonRecord(catalogue)], 0);
      this.#conclude(job, { outcome: "end" });
    } catch (thrown) {
      this.#end(job, Fault.from(thrown));
    }
  }

  async #manage(job: AgentJob): Promise<void> {
    const { clock, runtime, manage: allowed } = this.#options;
    const { body = new Uint8Array(), head } = job;
    job.state = "loading";
    job.startedAtMs = clock.now();
    const outcome = await manageModels({
      model: head.model ?? "",
      body,
      offer: runtime.offer,
      allowed,
      signal: job.signal,
      write: (progress) => {
        job.moved(clock.now());
        void job.frames.write([jsonRecord(progress)], 0);
      },
    });
    this.#conclude(job, outcome);
  }

  #conclude(job: AgentJob, outcome: Outcome): void {
    job.end(outcome, this.#options.clock.now());
    logOutcome(this.#options.log, job, outcome);
  }

  #cancel(id: string): void {
    const job = this.#jobs.get(id);
    if (job === undefined) {
      this.#past.add(id, this.#options.clock.now());
      return;
    }
    // An ended job may still hold bytes that wait for credit.
    if (job.state === "ended") {
      this.#forget(id);
      return;
    }
    this.#stop(job, new Fault("cancelled", { message: "The request was cancelled." }));
  }

  /** Ends a job in any state. A running job is aborted and reports its own outcome; a waiting job ends here. */
  #stop(job: AgentJob, fault: Fault): void {
    job.abort(fault);
    if (job.state !== "ended" && job.startedAtMs === undefined) this.#end(job, fault);
  }

  #end(job: AgentJob, fault: Fault): void {
    if (job.state === "ended") return;
    this.#releaseBody(job);
    this.#conclude(job, { outcome: "fault", fault });
    this.#start(this.#lanes.remove(job.head.id));
  }

  /** Releases the bytes that a body in parts reserved. They count from the job's acceptance until it begins or ends. */
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
    this.#jobs.get(id)?.frames.release();
    this.#jobs.delete(id);
    this.#past.add(id, this.#options.clock.now());
  }

  #managing(): number {
    return [...this.#jobs.values()].filter(({ head, state }) => head.kind === "manage" && state !== "ended").length;
  }

  /** Returns the number of sequences that a runtime works on for jobs of this agent. */
  #runningOn(runtime: Runtime): number {
    return this.#jobsOn(runtime).reduce((sequences, { width }) => sequences + width, 0);
  }

  #workOn(runtime: Runtime): RuntimeWork {
    const jobs = this.#jobsOn(runtime);
    const heardAtMs = jobs.map((job) => (job.firstTokenAtMs === undefined ? -Infinity : job.progressAtMs));
    return { running: jobs.length > 0, heardAtMs: Math.max(-Infinity, ...heardAtMs) };
  }

  #jobsOn(runtime: Runtime): AgentJob[] {
    return [...this.#jobs.values()].filter(
      ({ route, startedAtMs, state }) => route?.runtime === runtime && startedAtMs !== undefined && state !== "ended",
    );
  }
}

function bodyOf({ body }: AgentJob): Uint8Array {
  if (body === undefined) throw new Error("a job was started before its body was there");
  return body;
}

/** True if a runtime refused a job before its first token because the runtime is busy with other work. */
function wasTooMuch(job: AgentJob, outcome: Outcome): boolean {
  const isRefused = outcome.outcome === "fault" && outcome.fault.code === "server_is_overloaded";
  return isRefused && job.firstTokenAtMs === undefined && !job.signal.aborted;
}

function runtimeOffline(): Fault {
  return new Fault("runtime_offline", { message: "The model server on the GPU machine does not answer." });
}
