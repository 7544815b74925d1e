import type { Fault, FaultCode } from "#shared/fault/fault.ts";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { BeatRow, EndPayload, LoadNews, ResumedAnswer } from "#shared/protocol/frame-payload.ts";
import type { Chosen } from "../routing/choose-machine.ts";
import type { DeliveredAnswer } from "./continue-answer.ts";
import type { JobOutcome } from "./job-events.ts";

/** Counts refused offers, streams and implausible usage. */
export interface AnswerMeter {
  offerRefused(machine: string, reason: FaultCode): void;
  /** Called with the first piece of a stream. The returned object observes the gaps between later pieces, in seconds. */
  streamBegan(model: string): { observe(seconds: number): void };
  streamEnded(): void;
  /** A machine reported more tokens than the request can have used. */
  usageNotBelieved(machine: string): void;
}

/** The metadata of an answer, in every shape. */
export interface AnswerHead {
  readonly id: string;
  readonly createdSeconds: number;
  readonly model: string;
}

/** The times of an answer on its machine: queued, loading its model, until its first token, and in all. */
export type AnswerTimings = EndPayload["timings"] & { readonly loadMs: number };

/** Renders the answer events of one answer as the bytes for its client. */
export interface AnswerRenderer {
  /**
   * Returns the bytes for these events; empty when the shape writes nothing before the end. Throws a Fault when the
   * events are invalid, or when the answer exceeds a limit.
   */
  push(events: readonly AnswerEvent[]): Uint8Array;
  /** Returns the last bytes, after the last event. An answer that ended at a limit of its key has no timings. */
  end(timings?: AnswerTimings): Uint8Array;
  /** Called when another machine goes on with the answer. */
  onMoved?(): void;
}

/** Takes the rendered answer on its way to the client. */
export interface AnswerWriter {
  /** Called when a machine has the job. `model` is the model's id on that machine. */
  onAccept(machine: string, model: string): void;
  /** Called when another machine goes on with an answer of which a part was passed on. */
  onContinue(machine: string): void;
  onData(bytes: Uint8Array): void;
  /** Called with the last bytes of a stream, which leave once the answer is booked. */
  onLast(bytes: Uint8Array): void;
  /** Called with the bytes of records that came and gave nothing to pass on yet, for an answer that is sent whole. */
  onHold(bytes: number): void;
  onTick(nowMs: number, row: BeatRow | undefined, load: LoadNews | undefined): void;
  /** True if the client has left. */
  hasLeft(): boolean;
  /** Returns the rendered bytes that the client has not read. Undefined when there is no client to wait for. */
  unreadBytes(): number | undefined;
}

/** The bytes of a stream, besides its answer, as an API writes them. */
export interface StreamEnds {
  /** The media type of the stream; that of server-sent events unless given. */
  readonly media?: string;
  /** Sent after a success, and only then. */
  readonly whole: Uint8Array;
  /**
   * True if the stream has no place for a comment or an error, as audio has none. The status line then waits for the
   * first piece, and a failure cuts the connection.
   */
  readonly isBare?: boolean;
  /** Returns the bytes that report a failure after the first piece. */
  failed(fault: Fault): Uint8Array;
  /** Returns the bytes that keep a waiting client's connection alive and say what it waits for. */
  waiting(reason: string): Uint8Array;
}

/** Bounds the length of an answer by what its key has left. */
export interface AnswerBound {
  /** The tokens that the answer may have before anything is asked. */
  readonly upToTokens: number;
  /** Called with the tokens of an answer that has more. It may cancel the job. */
  used(outputTokens: number): void;
  /** True while it is unknown if the answer may go on. */
  readonly isGrowing: boolean;
}

export interface AnswerRendering {
  readonly streamed: boolean;
  /** Creates the renderer of an answer by this model. Another machine's answer to the same request is rendered anew. */
  readonly render: (model: string, offer: JobOffer, resumed?: ResumedAnswer) => AnswerRenderer;
  readonly bound?: AnswerBound | undefined;
  /** Keeps the answer so far; undefined if no other machine may go on with it. */
  readonly delivered?: DeliveredAnswer | undefined;
}

/** A job offered to a machine, and the machines that come next in the ranking. */
export interface JobOffer {
  readonly job: string;
  readonly chosen: Chosen;
  readonly next: readonly Chosen[];
}

/** A job of an answer at one machine, which hears what the answer hears of it. */
export interface Attempt {
  /** The machine has the job. `resumed` is what it tells of an answer that is resumed. */
  accepted(resumed: ResumedAnswer | undefined): void;
  /** The machine has begun to answer; told more than once for an answer that comes in one piece. */
  begun(): void;
  /** A part of the answer was passed on, so that no other machine can give the whole. */
  said(): void;
  over(outcome: JobOutcome): void;
  /** True if another machine has room to go on with the answer now. */
  mayGoOn(): boolean;
}

/** An offer to a machine, and the code with which the machine refused it or failed. */
export interface Tried {
  readonly offer: JobOffer;
  readonly offeredAtMs: number;
  /** The tokens of the answer that its client had by then, if the machine was to go on with it. */
  readonly fromTokens?: number | undefined;
  code?: FaultCode;
  /** When the machine refused the request, failed or had answered. */
  overAtMs?: number;
}
