import { answerEvent, type AnswerEvent } from "#shared/answer/answer-event.ts";
import type { AnswerHead, AnswerRenderer } from "#shared/answer/answer-renderer.ts";
import { eventsShape, rendererFor } from "#shared/answer/answer-shape.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { BeatRow, EndPayload, JobState, Usage } from "#shared/protocol/frame-payload.ts";
import { limits } from "#shared/protocol/limits.ts";
import { LineCutter } from "#shared/process/line-cutter.ts";
import type { JobListener } from "./follow-frames.ts";

/** Creates the renderer of an answer, once the model is known. */
export type Render = (head: AnswerHead) => AnswerRenderer;

interface Wish {
  readonly shape: string;
  /** Renders the answer here in any case, if machines do not know everything that it must contain. */
  readonly render?: Render | undefined;
}

/**
 * Returns a renderer if this gateway must render the answer. The machine then sends events, since it does not know the
 * shape that the client reads. A new shape therefore works with agents that were built before it.
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

/** Renders the events of a machine's answer into another shape, and passes the result to the listener. */
export class RenderedEvents implements JobListener {
  readonly #listener: JobListener;
  readonly #onBroken: (fault: Fault) => void;
  readonly #renderer: AnswerRenderer;
  readonly #lines = new LineCutter(limits.wholeAnswerBytesMax, () => irregular("a line without an end"));
  /** Set only if the answer has a client to wait for. */
  readonly backlogBytes?: () => number;
  /** A rendered event is long and takes a while to make. Rendering many at once would delay all other requests. */
  readonly creditBytes = limits.renderedCreditBytes;
  #finished = false;
  #said = false;

  /** `onBroken` must cancel the job: the machine's events are invalid. */
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

  onAccept(machine: string, state?: JobState): void {
    this.#listener.onAccept?.(machine, state);
  }

  onBeat(row: BeatRow): void {
    this.#listener.onBeat?.(row);
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

  /** Ends the answer after the machine's last event. Throws if the events are incomplete. */
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
