import { type AnswerEvent, eventOf, RecordReader } from "#shared/protocol/answer-events.ts";
import type { BeatRow, EndPayload, JobState, Usage } from "#shared/protocol/frame-payload.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { JobListener } from "./job-listener.ts";
import { machineBrokeRules } from "./machine-fault.ts";

/** The metadata of an answer, in every shape. */
export interface AnswerHead {
  readonly id: string;
  readonly createdSeconds: number;
  readonly model: string;
  /** True if the client asked for usage as a chunk of its own; streams only. */
  readonly includeUsage: boolean;
}

/** Renders the answer events of one answer as the bytes for its client. */
export interface AnswerRenderer {
  /**
   * Returns the bytes for these events; empty when the shape writes nothing before the end. Throws a Fault when the
   * events are invalid, or when the answer exceeds a limit.
   */
  push(events: readonly AnswerEvent[]): Uint8Array;
  /** Returns the last bytes, after the last event. */
  end(): Uint8Array;
}

/** Renders the records of a machine's answer, and passes the rendered bytes to the listener. */
export class RenderedAnswer implements JobListener {
  readonly #renderer: AnswerRenderer;
  readonly #listener: JobListener;
  readonly #reader = new RecordReader({ textMax: limits.answerRecordCharactersMax, broken });
  /** Set only if the answer has a client to wait for. */
  readonly backlogBytes?: () => number;
  #finished = false;
  #said = false;
  #heldBytes = 0;

  constructor(renderer: AnswerRenderer, listener: JobListener) {
    this.#renderer = renderer;
    this.#listener = listener;
    if (listener.backlogBytes !== undefined) this.backlogBytes = () => listener.backlogBytes?.() ?? 0;
  }

  hasSaid(): boolean {
    return this.#said;
  }

  onAccept(machine: string, state?: JobState): void {
    this.#listener.onAccept?.(machine, state);
  }

  onBeat(row: BeatRow): void {
    this.#listener.onBeat?.(row);
  }

  onData(payload: Uint8Array, outputTokens: number): void {
    const events: AnswerEvent[] = [];
    for (const record of this.#reader.read(payload)) {
      const event = eventOf(record);
      if (event === undefined) throw broken("a record that is no answer event");
      if (event.kind === "finish") this.#finished = true;
      events.push(event);
    }
    const rendered = this.#renderer.push(events);
    if (rendered.byteLength > 0) {
      this.#pass(rendered, outputTokens);
      return;
    }
    this.#heldBytes += payload.byteLength;
    this.#listener.onHold?.(this.#heldBytes);
  }

  onUsage(usage: Usage): void {
    this.#listener.onUsage?.(usage);
  }

  onTimings(timings: EndPayload["timings"]): void {
    this.#listener.onTimings?.(timings);
  }

  onTick(nowMs: number, row: BeatRow | undefined): void {
    this.#listener.onTick?.(nowMs, row);
  }

  onEnd(outputTokens: number): void {
    if (this.#reader.hasBegun || !this.#finished) throw broken("an answer without its end");
    this.#pass(this.#renderer.end(), outputTokens);
  }

  #pass(bytes: Uint8Array, outputTokens: number): void {
    if (bytes.byteLength === 0) return;
    this.#said = true;
    this.#heldBytes = 0;
    this.#listener.onData(bytes, outputTokens);
  }
}

function broken(what: string): Error {
  return machineBrokeRules(`it sent ${what}`);
}
