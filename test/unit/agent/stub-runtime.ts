import { setImmediate as nextTurn } from "node:timers/promises";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { OfferedModel } from "#shared/protocol/model.ts";
import type { ChatRun, DescribedModel, EmitEvents, Runtime } from "../../../services/agent/runtimes/runtime.ts";

const turnsMax = 12;

/** Lets arrive and happen all that is under way in this process; nothing else but time moves it. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < turnsMax; turn += 1) await nextTurn();
}

const createdSeconds = 1_767_225_600;

/** A model as the stub describes it. */
export function stubDescribed(id: string): DescribedModel {
  return { id, createdSeconds, ownedBy: "stub", capabilities: { tools: true }, sizeBytes: 1_000_000 };
}

/** The same as its machine offers it. */
export function stubModel(id: string, runtime = "stub"): OfferedModel {
  return {
    id,
    object: "model",
    created: createdSeconds,
    owned_by: "stub",
    context_window: 4_096,
    size_mb: 1,
    capabilities: { completion: true, vision: false, embedding: false, tools: true, thinking: false },
    runtime_profile: "auto",
    runtime,
  };
}

/** One chat that a stub runtime was asked for; the test says what happens in it. */
export class StubChat {
  readonly run: ChatRun;
  #wake = Promise.withResolvers<void>();
  #said: (readonly AnswerEvent[] | Error)[] = [];
  #over = false;

  constructor(run: ChatRun) {
    this.run = run;
  }

  text(text: string): this {
    return this.#say([{ kind: "text", text }]);
  }

  finish(): this {
    this.#over = true;
    return this.#say([
      { kind: "finish", reason: "stop" },
      { kind: "usage", promptTokens: 5, completionTokens: 2 },
    ]);
  }

  fail(error: Error): this {
    return this.#say(error);
  }

  /** Resolves when all that was said has arrived and happened. */
  settled(): Promise<void> {
    return settle();
  }

  #say(said: readonly AnswerEvent[] | Error): this {
    this.#said.push(said);
    this.#wake.resolve();
    return this;
  }

  /** Like a runtime that hangs, it does not even notice that it was aborted. */
  async emit(emit: EmitEvents): Promise<void> {
    for (;;) {
      for (const said of this.#said.splice(0)) {
        if (said instanceof Error) throw said;
        await emit(said);
      }
      if (this.#over) return;
      this.#wake = Promise.withResolvers();
      await this.#wake.promise;
    }
  }
}

/** A runtime that does what a test says, and keeps every chat that it was asked for. */
export class StubRuntime implements Runtime {
  readonly name: string;
  readonly slots: number;
  readonly chats: StubChat[] = [];
  /** What it offers; an error is how its catalogue fails. */
  offered: readonly DescribedModel[] | Error;
  closed = false;

  constructor(options: { slots?: number; models?: readonly string[]; name?: string } = {}) {
    const { slots = 1, models = ["llama3"], name = "stub" } = options;
    this.name = name;
    this.slots = slots;
    this.offered = models.map(stubDescribed);
  }

  async catalogue(): Promise<readonly DescribedModel[]> {
    if (this.offered instanceof Error) throw this.offered;
    return this.offered;
  }

  chat(run: ChatRun, emit: EmitEvents): Promise<void> {
    const chat = new StubChat(run);
    this.chats.push(chat);
    return chat.emit(emit);
  }

  async close(): Promise<void> {
    this.closed = true;
  }

  /** The chat that was begun in this place. */
  begun(place = 0): StubChat {
    const chat = this.chats[place];
    if (chat === undefined) throw new Error(`only ${this.chats.length} chats were begun`);
    return chat;
  }
}
