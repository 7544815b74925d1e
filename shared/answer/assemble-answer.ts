import { randomBytes } from "node:crypto";
import { Fault } from "../fault/fault.ts";
import type { AnswerEvent, FinishReason, Usage } from "./answer-event.ts";

/**
 * Makes what a runtime says regular, so that a stream and a whole answer are made of the same events: no empty text,
 * every tool call announced once with an id of its own, and at the end exactly one finish and at most one usage, in
 * this order, whichever came first. Runtimes send these in any order; what they say is trusted no further.
 */
export class AnswerAssembly {
  readonly #calls = new Set<number>();
  readonly #ids = new Set<string>();
  #reason: FinishReason | undefined;
  #usage: Usage | undefined;
  #outputTokens = 0;

  /** Pieces of output so far. Runtimes send one token at a time, and the true number comes with the usage. */
  get outputTokens(): number {
    return this.#usage?.completionTokens ?? this.#outputTokens;
  }

  get usage(): Usage | undefined {
    return this.#usage;
  }

  get finishReason(): FinishReason | undefined {
    const called = this.#calls.size > 0;
    if (this.#reason === "stop" && called) return "tool_calls";
    return this.#reason === "tool_calls" && !called ? "stop" : this.#reason;
  }

  push(events: readonly AnswerEvent[]): AnswerEvent[] {
    const regular: AnswerEvent[] = [];
    for (const event of events) {
      const kept = this.#take(event);
      if (kept !== undefined) regular.push(kept);
    }
    return regular;
  }

  /** To be called once, when the runtime has ended. An answer without a finish has broken off and is no answer. */
  end(): AnswerEvent[] {
    const reason = this.finishReason;
    if (reason === undefined) {
      throw new Fault("upstream_error", {
        message: "The model's answer broke off before its end.",
        internal: "the runtime ended its answer without a finish reason",
      });
    }
    const finish: AnswerEvent = { kind: "finish", reason };
    return this.#usage === undefined ? [finish] : [finish, { kind: "usage", ...this.#usage }];
  }

  #take(event: AnswerEvent): AnswerEvent | undefined {
    switch (event.kind) {
      case "text":
      case "reasoning":
        if (event.text === "") return undefined;
        this.#outputTokens += 1;
        return event;
      case "tool-call-start":
        if (this.#calls.has(event.index)) throw irregular(`tool call ${event.index} started twice`);
        this.#calls.add(event.index);
        return { ...event, id: this.#ownId(event.id) };
      case "tool-call-delta":
        if (!this.#calls.has(event.index)) throw irregular(`tool call ${event.index} has arguments but no start`);
        if (event.arguments === "") return undefined;
        this.#outputTokens += 1;
        return event;
      case "finish":
        this.#reason = event.reason;
        return undefined;
      case "usage": {
        const { kind: _, ...usage } = event;
        this.#usage = usage;
        return undefined;
      }
    }
  }

  #ownId(given: string | undefined): string {
    const id =
      given === undefined || given === "" || this.#ids.has(given) ? `call_${randomBytes(12).toString("hex")}` : given;
    this.#ids.add(id);
    return id;
  }
}

function irregular(what: string): Fault {
  return new Fault("upstream_error", { message: "The model's answer could not be understood.", internal: what });
}
