import type { Clock } from "#shared/process/clock.ts";
import type { Fault, FaultCode } from "#shared/fault/fault.ts";
import type { BeatRow, EndPayload, JobState, Usage } from "#shared/protocol/frame-payload.ts";
import type { JobListener, JobOffer } from "./job-listener.ts";

/** Counts refused offers, streams and implausible usage. */
export interface AnswerMeter {
  offerRefused(machine: string, reason: FaultCode): void;
  /** Called with the first piece of a stream. The returned object observes the gaps between later pieces, in seconds. */
  streamBegan(model: string): { observe(seconds: number): void };
  streamEnded(): void;
  /** A machine reported more tokens than the request can have used. */
  usageNotBelieved(machine: string): void;
}

/** A machine with a job in one of these states has not begun to work on it. */
const notBegun: ReadonlySet<JobState | undefined> = new Set(["receiving", "queued", "loading"]);

const nobody: JobListener = { onData: () => undefined };

/**
 * Records the course of one answer: the machines that were offered the job, the machine that took it, and the times of
 * the pieces. It stands between the machines and the listener for the answer, and changes nothing.
 */
export class AnswerCourse implements JobListener {
  /** Set only if the answer has a client to wait for. */
  backlogBytes?: () => number;
  readonly #clock: Pick<Clock, "now">;
  readonly #meter: AnswerMeter | undefined;
  readonly #jobs: string[] = [];
  #offer: JobOffer | undefined;
  #machine: string | undefined;
  #failovers = 0;
  #offeredAtMs = -Infinity;
  #acceptedAtMs: number | undefined;
  #firstAtMs: number | undefined;
  #latestAtMs = 0;
  #gaps: { observe(seconds: number): void } | undefined;
  #outputTokens = 0;
  #state: JobState | undefined;
  #madeTokens = 0;
  #usage: Usage | undefined;
  #listener: JobListener = nobody;
  #streamed = false;

  constructor(means: { readonly clock: Pick<Clock, "now">; readonly meter?: AnswerMeter | undefined }) {
    this.#clock = means.clock;
    this.#meter = means.meter;
  }

  /** Ids of all jobs that were offered for the answer, the latest last. */
  get jobs(): readonly string[] {
    return this.#jobs;
  }

  /** The machine that took the job; the latest one if several did. */
  get machine(): string | undefined {
    return this.#machine;
  }

  /** The model by its id on the machine that was last offered the job. */
  get model(): string | undefined {
    return this.#offer?.model;
  }

  /** The context window of that model on that machine. */
  get window(): number | undefined {
    return this.#offer?.window;
  }

  /** True if a machine accepted the request and did not say that the request still waits there. */
  get hasBegun(): boolean {
    return this.#machine !== undefined && !notBegun.has(this.#state);
  }

  /** Counts the offers to another machine after a machine had taken the job. */
  get failovers(): number {
    return this.#failovers;
  }

  get acceptedAtMs(): number | undefined {
    return this.#acceptedAtMs;
  }

  get firstAtMs(): number | undefined {
    return this.#firstAtMs;
  }

  /** Tokens of the answer that were delivered so far. */
  get outputTokens(): number {
    return this.#outputTokens;
  }

  /** Tokens of the answer on its machine by the latest beat, delivered or not. */
  get madeTokens(): number {
    return this.#madeTokens;
  }

  /** Token usage that the machine reported. */
  get usage(): Usage | undefined {
    return this.#usage;
  }

  /** Returns this course as a listener that passes every event on to `listener`. */
  following(listener: JobListener, { streamed }: { readonly streamed: boolean }): JobListener {
    this.#listener = listener;
    this.#streamed = streamed;
    if (listener.backlogBytes !== undefined) this.backlogBytes = () => listener.backlogBytes?.() ?? 0;
    return this;
  }

  onOffer(offer: JobOffer): void {
    if (this.#acceptedAtMs !== undefined) this.#failovers += 1;
    this.#acceptedAtMs = undefined;
    this.#offer = offer;
    this.#state = undefined;
    this.#madeTokens = 0;
    this.#offeredAtMs = this.#clock.now();
    this.#jobs.push(offer.job);
    this.#listener.onOffer?.(offer);
  }

  onRefused(fault: Fault): void {
    if (this.#offer !== undefined) this.#meter?.offerRefused(this.#offer.machine, fault.code);
    this.#listener.onRefused?.(fault);
  }

  onAccept(machine: string, state?: JobState): void {
    this.#machine = machine;
    this.#state = state;
    this.#acceptedAtMs = this.#clock.now();
    this.#listener.onAccept?.(machine);
  }

  onBeat([, state, , progress]: BeatRow): void {
    this.#state = state;
    this.#madeTokens = progress;
  }

  onData(bytes: Uint8Array, outputTokens: number): void {
    this.#outputTokens = outputTokens;
    const nowMs = this.#clock.now();
    if (this.#firstAtMs === undefined) {
      this.#firstAtMs = nowMs;
      if (this.#streamed) this.#gaps = this.#meter?.streamBegan(this.#offer?.model ?? "");
    } else this.#gaps?.observe((nowMs - this.#latestAtMs) / 1_000);
    this.#latestAtMs = nowMs;
    this.#listener.onData(bytes, outputTokens);
  }

  onHold(bytes: number): void {
    this.#listener.onHold?.(bytes);
  }

  onUsage(usage: Usage): void {
    this.#usage = usage;
    this.#listener.onUsage?.(usage);
  }

  onTimings(timings: EndPayload["timings"]): void {
    this.#learnAcceptance(timings);
    this.#listener.onTimings?.(timings);
  }

  onTick(nowMs: number, row: BeatRow | undefined): void {
    this.#listener.onTick?.(nowMs, row);
  }

  /**
   * Corrects the time of the accept. A machine that begins at once accepts with its first piece of the answer. Only its
   * end frame reports how long it had the job by then.
   */
  #learnAcceptance({ firstTokenMs }: EndPayload["timings"]): void {
    if (firstTokenMs === null || this.#firstAtMs === undefined || this.#acceptedAtMs === undefined) return;
    const tookItAtMs = Math.max(this.#offeredAtMs, this.#firstAtMs - firstTokenMs);
    this.#acceptedAtMs = Math.min(this.#acceptedAtMs, tookItAtMs);
  }

  /** Ends the course: no more events follow. */
  end(): void {
    if (this.#gaps !== undefined) this.#meter?.streamEnded();
    this.#gaps = undefined;
  }
}
