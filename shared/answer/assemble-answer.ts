import { randomBytes } from "node:crypto";
import { Fault } from "../fault/fault.ts";
import type { AnswerEvent, FinishReason, Usage } from "./answer-event.ts";

/**
 * Makes what a runtime says regular, so that a stream and a whole answer are made of the same events: no empty text,
 * every tool call announced once with an id of its own, and at the end exactly one finish for each choice and at most
 * one usage, in this order, whichever came first. Runtimes send these in any order; what they say is trusted no further.
 */
export class AnswerAssembly {
  readonly #choices = new Map<number, ChoiceSoFar>();
  readonly #ids = new Set<string>();
  #usage: Usage | undefined;
  #outputTokens = 0;

  /** Pieces of output so far. Runtimes send one token at a time, and the true number comes with the usage. */
  get outputTokens(): number {
    return this.#usage?.completionTokens ?? this.#outputTokens;
  }

  get usage(): Usage | undefined {
    return this.#usage;
  }

  /** Why the first choice ended. */
  get finishReason(): FinishReason | undefined {
    return this.#choices.get(0)?.finishReason;
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
    const choices = [...this.#choices].toSorted(([a], [b]) => a - b);
    const finishes = choices.map(([choice, { finishReason: reason }], place): AnswerEvent => {
      if (reason === undefined || choice !== place) throw brokenOff();
      return choice === 0 ? { kind: "finish", reason } : { kind: "finish", choice, reason };
    });
    if (finishes.length === 0) throw brokenOff();
    return this.#usage === undefined ? finishes : [...finishes, { kind: "usage", ...this.#usage }];
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
      case "usage": {
        const { kind: _, ...usage } = event;
        this.#usage = usage;
        return undefined;
      }
    }
  }

  #choiceOf({ choice = 0 }: { readonly choice?: number | undefined }): ChoiceSoFar {
    const known = this.#choices.get(choice);
    if (known !== undefined) return known;
    const begun = new ChoiceSoFar();
    this.#choices.set(choice, begun);
    return begun;
  }

  /** Ids are told apart over all choices: clients send a call back by its id alone. */
  #ownId(given: string | undefined): string {
    const id =
      given === undefined || given === "" || this.#ids.has(given) ? `call_${randomBytes(12).toString("hex")}` : given;
    this.#ids.add(id);
    return id;
  }
}

/** What one choice of an answer has said so far. */
class ChoiceSoFar {
  reason: FinishReason | undefined;
  readonly #calls = new Set<number>();

  /** A choice that calls tools has ended for that, and one that calls none has not. */
  get finishReason(): FinishReason | undefined {
    const called = this.#calls.size > 0;
    if (this.reason === "stop" && called) return "tool_calls";
    return this.reason === "tool_calls" && !called ? "stop" : this.reason;
  }

  start(call: number): void {
    if (this.#calls.has(call)) throw irregular(`tool call ${call} started twice`);
    this.#calls.add(call);
  }

  insistOnCall(call: number): void {
    if (!this.#calls.has(call)) throw irregular(`tool call ${call} has arguments but no start`);
  }
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
