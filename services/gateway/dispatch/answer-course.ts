import type { Clock } from "#shared/process/clock.ts";
import type { Fault } from "#shared/fault/fault.ts";
import type { FaultCode } from "#shared/fault/fault-code.ts";
import type { BeatRow, EndPayload, Usage } from "#shared/protocol/frame-payload.ts";
import type { JobListener, JobOffer } from "./follow-frames.ts";

/** Counts what becomes of answers on their way. */
export interface AnswerMeter {
  offerRefused(machine: string, reason: FaultCode): void;
  /** The first piece of a stream is there; what this returns counts the gaps behind it, in seconds. */
  streamBegan(model: string): { count(seconds: number): void };
  streamEnded(): void;
}

const nobody: JobListener = { onData: () => undefined };

/**
 * The course of one answer: who was offered the job, who took it, and when the pieces came. It stands between the machines
 * and whoever is to have the answer, and changes nothing.
 */
export class AnswerCourse implements JobListener {
  /** Only of an answer whose client has to be waited for. */
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
  #gaps: { count(seconds: number): void } | undefined;
  #outputTokens = 0;
  #usage: Usage | undefined;
  #listener: JobListener = nobody;
  #streamed = false;

  constructor(means: { readonly clock: Pick<Clock, "now">; readonly meter?: AnswerMeter | undefined }) {
    this.#clock = means.clock;
    this.#meter = means.meter;
  }

  /** All jobs that machines were offered for it, the latest last. */
  get jobs(): readonly string[] {
    return this.#jobs;
  }

  /** The machine that took it, the latest if there were several. */
  get machine(): string | undefined {
    return this.#machine;
  }

  /** The model by its id on the machine that was last offered the job. */
  get model(): string | undefined {
    return this.#offer?.model;
  }

  /** How often it was offered to another machine after one had taken it. */
  get failovers(): number {
    return this.#failovers;
  }

  get acceptedAtMs(): number | undefined {
    return this.#acceptedAtMs;
  }

  get firstAtMs(): number | undefined {
    return this.#firstAtMs;
  }

  /** What was delivered of it so far. */
  get outputTokens(): number {
    return this.#outputTokens;
  }

  /** What the machine says that it took. */
  get usage(): Usage | undefined {
    return this.#usage;
  }

  /** The course from here on, on its way to whoever is to have the answer. */
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
    this.#offeredAtMs = this.#clock.now();
    this.#jobs.push(offer.job);
    this.#listener.onOffer?.(offer);
  }

  onRefused(fault: Fault): void {
    if (this.#offer !== undefined) this.#meter?.offerRefused(this.#offer.machine, fault.code);
    this.#listener.onRefused?.(fault);
  }

  onAccept(machine: string): void {
    this.#machine = machine;
    this.#acceptedAtMs = this.#clock.now();
    this.#listener.onAccept?.(machine);
  }

  onData(bytes: Uint8Array, outputTokens: number): void {
    this.#outputTokens = outputTokens;
    const nowMs = this.#clock.now();
    if (this.#firstAtMs === undefined) {
      this.#firstAtMs = nowMs;
      if (this.#streamed) this.#gaps = this.#meter?.streamBegan(this.#offer?.model ?? "");
    } else this.#gaps?.count((nowMs - this.#latestAtMs) / 1_000);
    this.#latestAtMs = nowMs;
    this.#listener.onData(bytes, outputTokens);
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

  /** A machine that begins at once says so with its first word, and how long it had the job by then only at the end. */
  #learnAcceptance({ firstTokenMs }: EndPayload["timings"]): void {
    if (firstTokenMs === null || this.#firstAtMs === undefined || this.#acceptedAtMs === undefined) return;
    const tookItAtMs = Math.max(this.#offeredAtMs, this.#firstAtMs - firstTokenMs);
    this.#acceptedAtMs = Math.min(this.#acceptedAtMs, tookItAtMs);
  }

  /** Nothing more comes of it. */
  end(): void {
    if (this.#gaps !== undefined) this.#meter?.streamEnded();
    this.#gaps = undefined;
  }
}
