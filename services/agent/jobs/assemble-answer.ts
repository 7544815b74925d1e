import { randomBytes } from "node:crypto";
import { Fault } from "#shared/fault/fault.ts";
import type { AnswerEvent, FinishReason, Usage } from "#shared/protocol/answer-events.ts";

/**
 * Normalises a runtime's events, so that a stream and a whole answer come from the same events. It drops empty texts,
 * announces every tool call once with a unique id, and ends with exactly one finish for each choice. At most one usage
 * follows the finishes. Runtimes send finishes and usage in any order; their events are not trusted any further.
 */
export class AnswerAssembly {
  /** The first choice, which is nearly always the only one, and the others by their number. */
  #first: ChoiceSoFar | undefined;
  #others: Map<number, ChoiceSoFar> | undefined;
  /** Ids of the tool calls so far. */
  #ids: Set<string> | undefined;
  #usage: Extract<AnswerEvent, { kind: "usage" }> | undefined;
  #outputTokens = 0;

  /**
   * Output tokens so far, counted in pieces: runtimes send one token at a time. The exact number comes with the usage.
   */
  get outputTokens(): number {
    return this.#usage?.completionTokens ?? this.#outputTokens;
  }

  get usage(): Usage | undefined {
    if (this.#usage === undefined) return undefined;
    const { kind: _, ...usage } = this.#usage;
    return usage;
  }

  /** Finish reason of the first choice. */
  get finishReason(): FinishReason | undefined {
    return this.#first?.finishReason;
  }

  push(events: readonly AnswerEvent[]): AnswerEvent[] {
    const regular: AnswerEvent[] = [];
    for (const event of events) {
      const kept = this.#take(event);
      if (kept !== undefined) regular.push(kept);
    }
    return regular;
  }

  /**
   * Returns the closing events; call it once, when the runtime has ended. Throws when a choice has no finish or when a
   * choice of several is missing: the answer is incomplete.
   */
  end(): AnswerEvent[] {
    const reason = this.#first?.finishReason;
    if (reason === undefined) throw brokenOff();
    const ends: AnswerEvent[] = [{ kind: "finish", reason }];
    if (this.#others !== undefined) ends.push(...finishesOf(this.#others));
    if (this.#usage !== undefined) ends.push(this.#usage);
    return ends;
  }

  #take(event: AnswerEvent): AnswerEvent | undefined {
    switch (event.kind) {
      case "text":
      case "reasoning":
        if (event.text === "") return undefined;
        this.#choiceOf(event);
        this.#outputTokens += 1;
        return event;
      case "tool-call-start":
        this.#choiceOf(event).start(event.index);
        return { ...event, id: this.#ownId(event.id) };
      case "tool-call-delta":
        this.#choiceOf(event).insistOnCall(event.index);
        if (event.arguments === "") return undefined;
        this.#outputTokens += 1;
        return event;
      case "finish":
        this.#choiceOf(event).reason = event.reason;
        return undefined;
      case "embedding":
        return event;
      case "usage":
        this.#usage = event;
        return undefined;
    }
  }

  #choiceOf({ choice = 0 }: { readonly choice?: number | undefined }): ChoiceSoFar {
    if (choice === 0) return (this.#first ??= new ChoiceSoFar());
    this.#others ??= new Map();
    return this.#others.getOrInsertComputed(choice, () => new ChoiceSoFar());
  }

  /** Returns an id that is unique across all choices: clients refer to a tool call by its id alone. */
  #ownId(given: string | undefined): string {
    this.#ids ??= new Set();
    const isNone = given === undefined || given === "" || this.#ids.has(given);
    const id = isNone ? `call_${randomBytes(12).toString("hex")}` : given;
    this.#ids.add(id);
    return id;
  }
}

/** State of one choice so far. */
class ChoiceSoFar {
  reason: FinishReason | undefined;
  #calls: Set<number> | undefined;

  /**
   * Corrects the finish reason: `tool_calls` instead of `stop` with tool calls, and `stop` instead of `tool_calls`
   * without.
   */
  get finishReason(): FinishReason | undefined {
    const called = this.#calls !== undefined;
    if (this.reason === "stop" && called) return "tool_calls";
    return this.reason === "tool_calls" && !called ? "stop" : this.reason;
  }

  start(call: number): void {
    if (this.#calls?.has(call)) throw irregular(`tool call ${call} started twice`);
    this.#calls = (this.#calls ?? new Set()).add(call);
  }

  insistOnCall(call: number): void {
    if (!this.#calls?.has(call)) throw irregular(`tool call ${call} has arguments but no start`);
  }
}

/** Returns the finishes in the order of the choices. Throws when a choice or a finish is missing. */
function finishesOf(others: ReadonlyMap<number, ChoiceSoFar>): AnswerEvent[] {
  return [...others]
    .toSorted(([a], [b]) => a - b)
    .map(([choice, { finishReason: reason }], place) => {
      if (reason === undefined || choice !== place + 1) throw brokenOff();
      return { kind: "finish", choice, reason };
    });
}

function brokenOff(): Fault {
  return new Fault("upstream_error", {
    message: "The model's answer broke off before its end.",
    internal: "the runtime ended its answer without a finish reason",
  });
}

function irregular(what: string): Fault {
  return new Fault("upstream_error", { message: "The model's answer could not be understood.", internal: what });
}
