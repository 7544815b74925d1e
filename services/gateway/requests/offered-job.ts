import type { JobEvent, JobOutcome, JobOwner } from "../jobs/job-events.ts";
import type { PlacedJob } from "../routing/placement-memory.ts";

interface OfferedOptions {
  /** The answer of the request, of which this job is one attempt. */
  readonly answer: JobOwner;
  readonly placed: PlacedJob;
  /** Called when the machine has taken the job, and with its whole body: no gateway is needed any more to run it. */
  readonly taken: () => void;
  readonly given: () => void;
  /** True if the body follows the job in parts, which the gateway that has the body has to send. */
  readonly inParts: boolean;
  /** Called when a part of the answer was passed on. */
  readonly said: () => void;
  readonly mayGoOn: () => boolean;
}

/** A job of a request at one machine. The answer hears of it, and the memory of routing. */
export class OfferedJob implements JobOwner {
  readonly #options: OfferedOptions;
  #said = false;
  #isOver = false;

  constructor(options: OfferedOptions) {
    this.#options = options;
  }

  on(event: JobEvent): void {
    const { answer, placed, taken, given, inParts } = this.#options;
    if (event.kind === "accepted") {
      placed.accepted();
      if (!inParts) given();
      taken();
    } else if (event.kind === "begun") {
      placed.answering();
      if (inParts) given();
    }
    answer.on(event);
    if (event.kind === "data") this.#noteSaid();
    else if (event.kind === "end" || event.kind === "fault") this.#over(event);
  }

  unreadBytes(): number | undefined {
    return this.#options.answer.unreadBytes();
  }

  hasSaid(): boolean {
    return this.#options.answer.hasSaid();
  }

  hasLeft(): boolean {
    return this.#options.answer.hasLeft();
  }

  countTokens(): number {
    return this.#options.answer.countTokens();
  }

  mayGoOn(): boolean {
    return this.#options.mayGoOn();
  }

  #noteSaid(): void {
    if (this.#said || !this.hasSaid()) return;
    this.#said = true;
    this.#options.said();
  }

  /** An answer that refuses its end leaves the job meanwhile: then the failure came first. */
  #over(outcome: JobOutcome): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.placed.ended(outcome.kind === "end" ? outcome : undefined);
  }
}
