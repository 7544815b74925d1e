import type { Clock } from "#shared/process/clock.ts";
import type { Fault } from "#shared/fault/fault.ts";
import type { AnswerEvent, Usage } from "#shared/protocol/answer-events.ts";
import { eventOf, RecordReader } from "#shared/protocol/frame.ts";
import type { BeatRow, EndPayload, JobState, LoadNews, ResumedAnswer } from "#shared/protocol/frame-payload.ts";
import { limits } from "#shared/protocol/limits.ts";
import { type DeliveredAnswer, wholeUsage } from "./continue-answer.ts";
import type {
  AnswerMeter,
  AnswerTimings,
  AnswerRenderer,
  AnswerWriter,
  AnswerRendering,
  JobOffer,
  Tried,
} from "./answer-parts.ts";
import type { JobEvent, JobOwner } from "./job-events.ts";
import { machineBrokeRules, machineDisconnected } from "./machine-fault.ts";

/** A machine with a job in one of these states has not begun to work on it. */
const notBegun: ReadonlySet<JobState | undefined> = new Set(["receiving", "queued", "loading"]);

/**
 * Stands between the machines and the writer of one answer. It reads the records of a machine's answer, and passes the
 * rendered bytes on. It records the machines that were offered the job, the machine that took it, and the times of the
 * pieces.
 */
export class AnswerCourse implements JobOwner {
  /** True if the client resumed the answer by another request. */
  isMoved = false;
  /** The tokens of a resumed answer that other gateways have counted, and its prompt with them. */
  countedTokens: number | undefined;
  /** The tokens up to which its machine was told that a resumable answer is counted. */
  toldTokens: number | undefined;
  /** The answer so far; undefined if no other machine may go on with it. */
  delivered: DeliveredAnswer | undefined;
  /** The machines that were offered the answer's job, the latest last. */
  readonly tried: Tried[] = [];
  /** The machine that took the job; the latest one if several did. */
  machine: string | undefined;
  /** Counts the offers to another machine after a machine had taken the job. */
  failovers = 0;
  acceptedAtMs: number | undefined;
  /** For how long the job waited on its machine until its model was loaded, as its beats tell. */
  loadWaitMs: number | undefined;
  firstAtMs: number | undefined;
  /** Tokens of the answer that were delivered so far. */
  outputTokens = 0;
  /** Tokens of the answer on its machine by the latest beat, delivered or not. */
  madeTokens = 0;
  /** Token usage that the machine reported. */
  usage: Usage | undefined;
  /** Set for an answer that its client resumes: returns the offer by what its machine tells of it. */
  #offerOf: ((resumed: ResumedAnswer | undefined) => JobOffer | undefined) | undefined;
  #timings: AnswerTimings | undefined;
  readonly #clock: Pick<Clock, "now">;
  readonly #meter: AnswerMeter | undefined;
  #latestAtMs = 0;
  #gaps: { observe(seconds: number): void } | undefined;
  #state: JobState | undefined;
  /** The load of the model that the job waits for. */
  #load: LoadNews | undefined;
  #writer: AnswerWriter | undefined;
  #rendering: AnswerRendering | undefined;
  #renderer: AnswerRenderer | undefined;
  #reader = newReader();
  /** The choices that have their finish. */
  #finished = new Set<number>();
  #receivedTokens = 0;
  /** The tokens and the thought of an answer that earlier machines began. */
  #earlier = { tokens: 0, thought: 0 };
  #said = false;
  #heldBytes = 0;

  constructor(dependencies: { readonly clock: Pick<Clock, "now">; readonly meter?: AnswerMeter | undefined }) {
    this.#clock = dependencies.clock;
    this.#meter = dependencies.meter;
  }

  /** The model by its id on the machine that was last offered the job. */
  get model(): string | undefined {
    return this.#latest?.offer.chosen.model.id;
  }

  /** The context window of that model on that machine. */
  get window(): number | undefined {
    return this.#latest?.offer.chosen.model.context_window;
  }

  get #latest(): Tried | undefined {
    return this.tried.at(-1);
  }

  /** True if a machine accepted the request and did not say that the request still waits there. */
  get hasBegun(): boolean {
    return this.machine !== undefined && !notBegun.has(this.#state);
  }

  /** Returns this course as a listener that passes the rendered answer on to `writer`. */
  following(writer: AnswerWriter, rendering: AnswerRendering): this {
    this.#writer = writer;
    this.#rendering = rendering;
    this.delivered = rendering.delivered;
    return this;
  }

  /** Takes the place of an earlier request, whose job the machine tells of when it accepts. */
  resumes(offerOf: (resumed: ResumedAnswer | undefined) => JobOffer | undefined): void {
    this.#offerOf = offerOf;
  }

  /** Forgets that the answer was to be resumed: its machine has lost it, and it is made anew. */
  forgetResumed(): void {
    this.#offerOf = this.countedTokens = undefined;
  }

  onOffer(offer: JobOffer, resumed?: ResumedAnswer): void {
    if (this.acceptedAtMs !== undefined && offer.chosen.machine !== this.machine) this.failovers += 1;
    const fromTokens = this.#said ? this.outputTokens : undefined;
    this.tried.push({ offer, offeredAtMs: this.#clock.now(), fromTokens });
    this.#state = undefined;
    this.madeTokens = 0;
    this.#reader = newReader();
    this.#finished.clear();
    this.#heldBytes = 0;
    if (fromTokens === undefined) {
      this.acceptedAtMs = this.loadWaitMs = undefined;
      this.#renderer = this.#rendering?.render(offer.chosen.model.id, offer, resumed);
    } else {
      this.#renderer?.onMoved?.();
      this.#earlier = { tokens: fromTokens, thought: this.delivered?.movedOn() ?? 0 };
    }
  }

  on(event: JobEvent): void {
    switch (event.kind) {
      case "accepted":
        return this.#accepted(event.state, event.resumed);
      case "data":
        return this.#data(event.payload, event.outputTokens);
      case "beat":
        return this.#beat(event.row, event.load);
      case "tick":
        return this.#writer?.onTick(event.nowMs, event.row, this.#load);
      case "usage":
        this.usage = wholeUsage(event.usage, this.#earlier);
        return;
      case "moved":
        this.isMoved = true;
        this.outputTokens = Math.min(this.#receivedTokens, event.countedTokens);
        return;
      case "end":
        this.#noteTimings(event.end.timings);
        return this.#end(event.end.usage?.completionTokens ?? 0);
      case "fault":
        return this.#failed(event.fault, event.taken);
      case "begun":
    }
  }

  #failed({ code }: Fault, taken: boolean): void {
    const latest = this.#latest;
    if (latest === undefined) return;
    if (!taken) this.#meter?.offerRefused(latest.offer.chosen.machine, code);
    latest.code = code;
  }

  #accepted(state: JobState | undefined, resumed: ResumedAnswer | undefined): void {
    const offer = this.#offerOf?.(resumed);
    if (offer !== undefined && resumed !== undefined) {
      this.onOffer(offer, resumed);
      this.countedTokens = resumed.countedTokens;
    }
    const machine = this.#latest?.offer.chosen.machine ?? "";
    this.machine = machine;
    this.#state = state;
    this.acceptedAtMs ??= this.#clock.now();
    if (this.#said) this.#writer?.onContinue(machine);
    else this.#writer?.onAccept(machine, this.model ?? "");
  }

  #beat([, state, , progress]: BeatRow, load: LoadNews | undefined): void {
    this.#state = state;
    this.madeTokens = progress;
    if (state === "loading" && this.acceptedAtMs !== undefined) this.loadWaitMs = this.#clock.now() - this.acceptedAtMs;
    this.#load = state === "loading" && load?.model === this.model ? load : undefined;
  }

  hasSaid(): boolean {
    return this.#said;
  }

  #data(payload: Uint8Array, newTokens: number): void {
    if (this.tried.length === 0) throw machineDisconnected("the machine did not tell which answer it goes on with");
    const outputTokens = this.#earlier.tokens + newTokens;
    const events: AnswerEvent[] = [];
    for (const record of this.#reader.read(payload)) {
      const event = eventOf(record);
      if (event === undefined) throw broken("a record that is no answer event");
      if (event.kind === "finish") this.#finished.add(event.choice ?? 0);
      events.push(event.kind === "usage" ? wholeUsage(event, this.#earlier) : event);
    }
    const rendered = this.#renderer?.push(events);
    this.delivered?.take(payload);
    this.#receivedTokens = outputTokens;
    // A part of a resumed answer that its client has already is not passed on, and yet counted.
    if (this.countedTokens !== undefined) this.outputTokens = outputTokens;
    if (rendered !== undefined && rendered.byteLength > 0) this.#pass(rendered, outputTokens);
    else {
      this.#heldBytes += payload.byteLength;
      this.#writer?.onHold(this.#heldBytes);
    }
    this.#rendering?.bound?.used(Math.max(0, outputTokens - (this.countedTokens ?? 0)));
  }

  /** Ends the answer where it is, as if it had reached `max_tokens`. */
  endShort({ promptTokens, answers }: { readonly promptTokens: number; readonly answers: number }): void {
    const usage = { promptTokens, completionTokens: this.#receivedTokens };
    const open = Array.from({ length: answers }, (_, choice) => choice).filter((choice) => !this.#finished.has(choice));
    const ends = open.map((choice) => ({ kind: "finish", choice, reason: "length" }) as const);
    const rest = [this.#renderer?.push([...ends, { kind: "usage", ...usage }]), this.#renderer?.end()];
    this.#pass(Buffer.concat(rest.filter((bytes) => bytes !== undefined)), usage.completionTokens, { isLast: true });
    this.usage = usage;
  }

  #end(newTokens: number): void {
    if (this.#reader.hasBegun || this.#finished.size === 0) throw broken("an answer without its end");
    const rendered = this.#renderer?.end(this.#timings);
    if (rendered !== undefined && rendered.byteLength > 0)
      this.#pass(rendered, this.#earlier.tokens + newTokens, { isLast: true });
  }

  countTokens(): number {
    this.toldTokens = Math.max(this.#receivedTokens, this.countedTokens ?? 0);
    return this.toldTokens;
  }

  hasLeft(): boolean {
    return this.#writer?.hasLeft() ?? false;
  }

  unreadBytes(): number | undefined {
    const bound = this.#rendering?.bound;
    if (bound?.isGrowing) return Infinity;
    return this.#writer?.unreadBytes() ?? (bound && 0);
  }

  mayGoOn(): boolean {
    return false;
  }

  /**
   * Corrects the time of the accept. A machine that begins at once accepts with its first piece of the answer. Only its
   * end frame reports how long it had the job by then.
   */
  #noteTimings(timings: EndPayload["timings"]): void {
    const { firstTokenMs } = timings;
    this.#timings = { ...timings, loadMs: this.loadWaitMs ?? 0 };
    if (firstTokenMs === null || this.firstAtMs === undefined || this.acceptedAtMs === undefined) return;
    const tookItAtMs = Math.max(this.#latest?.offeredAtMs ?? -Infinity, this.firstAtMs - firstTokenMs);
    this.acceptedAtMs = Math.min(this.acceptedAtMs, tookItAtMs);
  }

  /** Ends the course: no more events follow. */
  end(): void {
    if (this.#gaps !== undefined) this.#meter?.streamEnded();
    this.#gaps = undefined;
    this.delivered?.end();
  }

  #pass(bytes: Uint8Array, outputTokens: number, { isLast = false } = {}): void {
    this.#said = true;
    this.#heldBytes = 0;
    this.outputTokens = outputTokens;
    const nowMs = this.#clock.now();
    if (this.firstAtMs === undefined) {
      this.firstAtMs = nowMs;
      if (this.#rendering?.streamed) this.#gaps = this.#meter?.streamBegan(this.model ?? "");
    } else this.#gaps?.observe((nowMs - this.#latestAtMs) / 1_000);
    this.#latestAtMs = nowMs;
    if (isLast) this.#writer?.onLast(bytes);
    else this.#writer?.onData(bytes);
  }
}

function newReader(): RecordReader {
  return new RecordReader({ textMax: limits.answerRecordCharactersMax, broken });
}

function broken(what: string): Error {
  return machineBrokeRules(`it sent ${what}`);
}
