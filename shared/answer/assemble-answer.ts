import { randomBytes } from "node:crypto";
import { Fault } from "../fault/fault.ts";
import type { AnswerEvent, FinishReason, Usage } from "./answer-event.ts";

/**
 * Makes what a runtime says regular, so that a stream and a whole answer are made of the same events: no empty text,
 * every tool call announced once with an id of its own, and at the end exactly one finish for each choice and at most
 * one usage, in this order, whichever came first. Runtimes send these in any order; what they say is trusted no further.
 */
export class AnswerAssembly {
  /** The first choice, which is nearly always the only one, and the others by their number. */
  #first: ChoiceSoFar | undefined;
  #others: Map<number, ChoiceSoFar> | undefined;
  /** Of tool calls. */
  #ids: Set<string> | undefined;
  #usage: Extract<AnswerEvent, { kind: "usage" }> | undefined;
  #outputTokens = 0;

  /** Pieces of output so far. Runtimes send one token at a time, and the true number comes with the usage. */
  get outputTokens(): number {
    return this.#usage?.completionTokens ?? this.#outputTokens;
  }

  get usage(): Usage | undefined {
    if (this.#usage === undefined) return undefined;
    const { kind: _, ...usage } = this.#usage;
    return usage;
  }

  /** Why the first choice ended. */
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

  /** So many pieces of the first choice's text have come that are passed on as they are. */
  pushWritten(texts: number): void {
    this.#choiceOf({});
    this.#outputTokens += texts;
  }

  /**
   * To be called once, when the runtime has ended. An answer without a finish has broken off and is no answer, and so
   * has one of several of which one is missing.
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

  /** Ids are told apart over all choices: clients send a call back by its id alone. */
  #ownId(given: string | undefined): string {
    this.#ids ??= new Set();
    const isNone = given === undefined || given === "" || this.#ids.has(given);
    const id = isNone ? `call_${randomBytes(12).toString("hex")}` : given;
    this.#ids.add(id);
    return id;
  }
}

/** What one choice of an answer has said so far. */
class ChoiceSoFar {
  reason: FinishReason | undefined;
  #calls: Set<number> | undefined;

  /** A choice that calls tools has ended for that, and one that calls none has not. */
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

/** In the order of their numbers, of which none may be missing. */
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
