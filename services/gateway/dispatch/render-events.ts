import { answerEvent, type AnswerEvent } from "#shared/answer/answer-event.ts";
import type { AnswerHead, AnswerRenderer } from "#shared/answer/answer-renderer.ts";
import { eventsShape, rendererFor } from "#shared/answer/answer-shape.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { BeatRow, EndPayload, Usage } from "#shared/protocol/frame-payload.ts";
import { limits } from "#shared/protocol/limits.ts";
import { LineCutter } from "#shared/process/line-cutter.ts";
import type { JobListener } from "./follow-frames.ts";

/** Makes what renders an answer, once it is known which model gives it. */
export type Render = (head: AnswerHead) => AnswerRenderer;

interface Wish {
  readonly shape: string;
  /** What renders it in any case, where machines do not know all that it is to say. */
  readonly render?: Render | undefined;
}

/**
 * What renders an answer here, if it is not its machine: that knows events, and not the shape that its client reads. So
 * a new shape reaches agents that were built before it.
 */
export function renderedHere({ shape, render }: Wish, known: readonly string[]): Render | undefined {
  if (render !== undefined) return render;
  if (known.includes(shape) || !known.includes(eventsShape)) return undefined;
  return (head) => {
    const renderer = rendererFor(shape, head);
    if (renderer === undefined) throw Fault.from(new Error(`no part of this build renders ${shape}`));
    return renderer;
  };
}

/** Stands between a machine that tells of an answer in events and whoever waits for the answer in another shape. */
export class RenderedEvents implements JobListener {
  readonly #listener: JobListener;
  readonly #onBroken: (fault: Fault) => void;
  readonly #renderer: AnswerRenderer;
  readonly #lines = new LineCutter(limits.wholeAnswerBytesMax, () => irregular("a line without an end"));
  /** Only of an answer whose client has to be waited for. */
  readonly backlogBytes?: () => number;
  /** What is made of an event is long, and takes a while to make: many at once would hold up all others. */
  readonly creditBytes = limits.renderedCreditBytes;
  #finished = false;
  #said = false;

  /** `onBroken` is to cancel the job: what it says is no answer. */
  constructor(options: {
    readonly renderer: AnswerRenderer;
    readonly listener: JobListener;
    readonly onBroken: (fault: Fault) => void;
  }) {
    const { renderer, listener, onBroken } = options;
    this.#renderer = renderer;
    this.#listener = listener;
    this.#onBroken = onBroken;
    if (listener.backlogBytes !== undefined) this.backlogBytes = () => listener.backlogBytes?.() ?? 0;
  }

  hasSaid(): boolean {
    return this.#said;
  }

  onAccept(machine: string): void {
    this.#listener.onAccept?.(machine);
  }

  onData(bytes: Uint8Array, outputTokens: number): void {
    try {
      const events = this.#lines.take(bytes).map(eventIn);
      this.#finished ||= events.some(({ kind }) => kind === "finish");
      this.#pass(this.#renderer.push(events), outputTokens);
    } catch (thrown) {
      this.#onBroken(Fault.from(thrown));
    }
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

  /** The machine has said all. */
  end(outputTokens: number): void {
    if (this.#lines.hasBegun || !this.#finished) throw irregular("no end");
    this.#pass(this.#renderer.end(), outputTokens);
  }

  #pass(bytes: Uint8Array, outputTokens: number): void {
    if (bytes.byteLength === 0) return;
    this.#said = true;
    this.#listener.onData(bytes, outputTokens);
  }
}

function eventIn(line: string): AnswerEvent {
  const parsed = answerEvent.safeParse(parse(line));
  if (!parsed.success) throw irregular("a line that is no answer event");
  return parsed.data;
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function irregular(what: string): Fault {
  return new Fault("upstream_error", {
    message: "The agent on the GPU machine does not speak as this gateway understands it.",
    internal: `an answer in events holds ${what}`,
  });
}
