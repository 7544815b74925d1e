import type { Fault } from "#shared/fault/fault.ts";
import type { Usage } from "#shared/protocol/answer-events.ts";
import type { BeatRow, EndPayload, JobState, LoadNews, ResumedAnswer } from "#shared/protocol/frame-payload.ts";
import type { RunningStage } from "#shared/requests/running-request.ts";
import type { AnswerRenderer, AnswerRendering, AnswerWriter, Attempt, JobOffer, Tried } from "./answer-parts.ts";
import { wholeUsage } from "./continue-answer.ts";
import type { JobEvent, JobOwner } from "./job-events.ts";
import { machineDisconnected } from "./machine-fault.ts";
import { AnswerFlow } from "./write-answer.ts";

/** A machine with a job in one of these states has not begun to work on it. */
const notBegun: ReadonlySet<JobState | undefined> = new Set(["receiving", "queued", "loading"]);

/** The renderer of an answer that no machine gives yet. */
const unnamed: AnswerRenderer = { push: unnamedAnswer, end: unnamedAnswer };

/**
 * The course of one answer: the machines that were offered its job, the machine that took it, what that machine tells, and
 * the times of it all.
 */
export class AnswerCourse extends AnswerFlow implements JobOwner {
  /** True if the client resumed the answer by another request. */
  isMoved = false;
  /** The tokens up to which its machine was told that a resumable answer is counted. */
  toldTokens: number | undefined;
  /** The machines that were offered the answer's job, the latest last. */
  readonly tried: Tried[] = [];
  /** The machine that took the job; the latest one if several did. */
  machine: string | undefined;
  /** The context window of the model on the machine that was last offered the job. */
  window: number | undefined;
  /** Counts the offers to another machine after a machine had taken the job. */
  failovers = 0;
  acceptedAtMs: number | undefined;
  /** For how long the job waited on its machine until its model was loaded, as its beats tell. */
  loadWaitMs: number | undefined;
  /** Tokens of the answer on its machine by the latest beat, delivered or not. */
  madeTokens = 0;
  /** The end frame of its machine. */
  endFrame: EndPayload | undefined;
  /** Token usage that the machine reported. */
  usage: Usage | undefined;
  protected override renderer = unnamed;
  #attempt: Attempt | undefined;
  #state: JobState | undefined;
  /** The load of the model that the job waits for. */
  #load: LoadNews | undefined;

  /** True if a machine accepted the request and did not say that the request still waits there. */
  get hasBegun(): boolean {
    return this.machine !== undefined && !notBegun.has(this.#state);
  }

  /** How far the answer has come, for operators. */
  get stage(): RunningStage {
    if (this.hasSaid() || this.madeTokens > 0) return "answering";
    if (this.#state === "loading") return "loading";
    return this.acceptedAtMs === undefined || notBegun.has(this.#state) ? "waiting" : "reading";
  }

  /** Passes the rendered answer on to `writer` from now on. */
  following(writer: AnswerWriter, rendering: AnswerRendering): this {
    this.writer = writer;
    this.rendering = rendering;
    this.delivered = rendering.delivered;
    return this;
  }

  /** Takes the job of this answer at one machine, which hears of the job from now on. */
  attempts(attempt: Attempt): void {
    this.#attempt = attempt;
  }

  /** Forgets that the answer was to be resumed: its machine has lost it, and it is made anew. */
  forgetResumed(): void {
    this.#attempt = this.countedTokens = undefined;
  }

  /** Called when the machine of a resumed answer has accepted: the answer goes on from there. */
  onResumed(offer: JobOffer, resumed: ResumedAnswer): void {
    this.onOffer(offer, resumed);
    this.countedTokens = resumed.countedTokens;
  }

  /** Called when the job is offered to a machine. */
  onOffer(offer: JobOffer, resumed?: ResumedAnswer): void {
    const { machine, model } = offer.chosen;
    if (this.acceptedAtMs !== undefined && machine !== this.machine) this.failovers += 1;
    const fromTokens = this.hasSaid() ? this.outputTokens : undefined;
    this.tried.push({ offer, offeredAtMs: this.clock.now(), fromTokens });
    this.model = model.id;
    this.window = model.context_window;
    this.#state = undefined;
    this.madeTokens = 0;
    this.begin();
    if (fromTokens === undefined) {
      this.acceptedAtMs = this.loadWaitMs = undefined;
      if (this.rendering !== undefined) this.renderer = this.rendering.render(model.id, offer, resumed);
    } else {
      this.renderer.onMoved?.();
      this.earlier = { tokens: fromTokens, thought: this.delivered?.movedOn() ?? 0 };
    }
  }

  protected override heard(event: Exclude<JobEvent, { kind: "data" }>): void {
    switch (event.kind) {
      case "accepted":
        return this.#accepted(event.state, event.resumed);
      case "begun":
        return this.#attempt?.begun();
      case "beat":
        return this.#beat(event.row, event.load);
      case "tick":
        return this.writer?.onTick(event.nowMs, event.row, this.#load);
      case "usage":
        this.usage = this.earlier.tokens > 0 ? wholeUsage(event.usage, this.earlier) : event.usage;
        return;
      case "moved":
        this.isMoved = true;
        this.outputTokens = Math.min(this.receivedTokens, event.countedTokens);
        return;
      case "end":
        this.#noteEnd(event.end);
        this.assertWhole();
        this.#passLast(
          this.renderer.end({ ...event.end.timings, loadMs: this.loadWaitMs ?? 0 }),
          this.earlier.tokens + (event.end.usage?.completionTokens ?? 0),
        );
        return this.#attempt?.over(event);
      case "fault":
        this.#failed(event.fault, event.taken);
        return this.#attempt?.over(event);
    }
  }

  protected override said(): void {
    this.#attempt?.said();
  }

  #failed({ code }: Fault, taken: boolean): void {
    const latest = this.tried.at(-1);
    if (latest === undefined) return;
    if (!taken) this.meter?.offerRefused(latest.offer.chosen.machine, code);
    latest.code = code;
    latest.overAtMs = this.clock.now();
  }

  #accepted(state: JobState | undefined, resumed: ResumedAnswer | undefined): void {
    this.#attempt?.accepted(resumed);
    const { machine = "" } = this.tried.at(-1)?.offer.chosen ?? {};
    this.machine = machine;
    this.#state = state;
    this.acceptedAtMs ??= this.clock.now();
    if (this.hasSaid()) this.writer?.onContinue(machine);
    else this.writer?.onAccept(machine, this.model ?? "");
  }

  #beat([, state, , progress]: BeatRow, load: LoadNews | undefined): void {
    this.#state = state;
    this.madeTokens = progress;
    if (state === "loading" && this.acceptedAtMs !== undefined) this.loadWaitMs = this.clock.now() - this.acceptedAtMs;
    this.#load = state === "loading" && load?.model === this.model ? load : undefined;
  }

  /** Passes the last bytes on, which leave once the answer is booked. */
  #passLast(bytes: Uint8Array, outputTokens: number): void {
    if (bytes.byteLength === 0) return;
    this.outputTokens = outputTokens;
    this.passing();
    this.writer?.onLast(bytes);
  }

  /** Ends the answer where it is, as if it had reached `max_tokens`. */
  endShort({ promptTokens, answers }: { readonly promptTokens: number; readonly answers: number }): void {
    const usage = { promptTokens, completionTokens: this.receivedTokens };
    const open = Array.from({ length: answers }, (_, choice) => choice).filter((choice) => !this.finished.has(choice));
    const ends = open.map((choice) => ({ kind: "finish", choice, reason: "length" }) as const);
    const rest = [this.renderer.push([...ends, { kind: "usage", ...usage }]), this.renderer.end()];
    this.#passLast(Buffer.concat(rest), usage.completionTokens);
    this.usage = usage;
  }

  countTokens(): number {
    this.toldTokens = Math.max(this.receivedTokens, this.countedTokens ?? 0);
    return this.toldTokens;
  }

  hasLeft(): boolean {
    return this.writer?.hasLeft() ?? false;
  }

  unreadBytes(): number | undefined {
    const { bound } = this.rendering ?? {};
    if (bound?.isGrowing) return Infinity;
    return this.writer?.unreadBytes() ?? (bound && 0);
  }

  mayGoOn(): boolean {
    return this.#attempt?.mayGoOn() ?? false;
  }

  /**
   * Keeps the end frame, and corrects the time of the accept. A machine that begins at once accepts with its first piece of the answer. Only its
   * end frame reports how long it had the job by then.
   */
  #noteEnd(end: EndPayload): void {
    const { firstTokenMs } = end.timings;
    const latest = this.tried.at(-1);
    this.endFrame = end;
    if (latest !== undefined) latest.overAtMs = this.clock.now();
    if (firstTokenMs === null || this.firstAtMs === undefined || this.acceptedAtMs === undefined) return;
    const tookItAtMs = Math.max(latest?.offeredAtMs ?? -Infinity, this.firstAtMs - firstTokenMs);
    this.acceptedAtMs = Math.min(this.acceptedAtMs, tookItAtMs);
  }

  /** Ends the course: no more events follow. */
  end(): void {
    if (this.gaps !== undefined) this.meter?.streamEnded();
    this.gaps = undefined;
    this.delivered?.end();
  }
}

function unnamedAnswer(): never {
  throw machineDisconnected("the machine did not tell which answer it goes on with");
}
