import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { Capabilities } from "#shared/protocol/model.ts";
import { createLog } from "#shared/process/log.ts";
import { chatBody, type ChatBody, type TextToContinue } from "#shared/protocol/job-bodies.ts";
import { llamaRuntime, type LlamaOptions } from "../../services/agent/runtimes/llama/llama.ts";
import type { ChatRun, CompleteRun, Runtime, Silence } from "../../services/agent/runtimes/runtime.ts";
import { findEngine } from "../harness/find-engine.ts";
import { writeTinyGguf, type TinyGguf } from "../harness/tiny-gguf.ts";
import { batchesOf, emittedBy } from "../harness/ask-runtime.ts";

/** Shared by all tests of a file: looking for it may install it. */
export const engine = await findEngine();
export const noEngine = "missing" in engine;

const capabilities: Capabilities = { completion: true, vision: false, embedding: true, tools: true, thinking: true };
const noWindow = 1_000_000;

export interface Asked extends Partial<ChatBody> {
  readonly says?: string;
  readonly signal?: AbortSignal;
  readonly onProgress?: (silence?: Silence) => void;
}

/** A runtime that serves tiny models by the real engine, from files that are gone with it. */
export class TinyRuntime implements AsyncDisposable {
  readonly runtime: Runtime;
  readonly model: string;
  readonly #folder: string;

  private constructor(runtime: Runtime, model: string, folder: string) {
    this.runtime = runtime;
    this.model = model;
    this.#folder = folder;
  }

  static async start(tiny: TinyGguf | readonly TinyGguf[], options: Partial<LlamaOptions> = {}): Promise<TinyRuntime> {
    const folder = await mkdtemp(join(tmpdir(), "trunkline-gguf-"));
    const models = "name" in tiny ? [tiny] : tiny;
    try {
      const files = await Promise.all(models.map((each) => writeTinyGguf(folder, each)));
      const runtime = await llamaRuntime({ ...quietly, files, ...options });
      return new TinyRuntime(runtime, models[0]?.name ?? "", folder);
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** What it answers at temperature 0 unless told, batch by batch. */
  async *batches(asked: Asked = {}): AsyncGenerator<readonly AnswerEvent[]> {
    const run = this.#runOf(asked);
    yield* batchesOf((emit) => this.runtime.chat(run, emit));
  }

  /** How many tokens it counts in a prompt that it does not answer. */
  async counted(asked: Asked = {}): Promise<number | undefined> {
    return this.runtime.count?.(this.#runOf(asked));
  }

  #runOf(asked: Asked): ChatRun {
    const { says = "Hi", signal = new AbortController().signal, onProgress = () => {}, ...fields } = asked;
    const body = chatBody.parse({ messages: [{ role: "user", content: says }], temperature: 0, ...fields });
    return { model: this.model, capabilities, contextWindow: noWindow, body, signal, onProgress };
  }

  async events(asked: Asked = {}): Promise<AnswerEvent[]> {
    return (await Array.fromAsync(this.batches(asked))).flat();
  }

  /** What it continues a text with at temperature 0 unless told. */
  async continued(asked: Partial<TextToContinue> & Partial<Pick<CompleteRun, "signal" | "onProgress">> = {}) {
    const { prompt = "", signal = new AbortController().signal, onProgress = () => {}, ...fields } = asked;
    const body = { temperature: 0, ...fields, prompt };
    const run = { model: this.model, capabilities, contextWindow: noWindow, body, signal, onProgress };
    return emittedBy(async (emit) => this.runtime.complete?.(run, emit));
  }

  async embed(input: string[], dimensions?: number): Promise<AnswerEvent[]> {
    const signal = new AbortController().signal;
    const run = { model: this.model, capabilities, contextWindow: noWindow, signal, onProgress: () => {} };
    const body = { input, ...(dimensions !== undefined && { dimensions }) };
    const { vectors = [], promptTokens = 0 } = (await this.runtime.embed?.({ ...run, body })) ?? {};
    const embedded = vectors.map((vector, index): AnswerEvent => ({ kind: "embedding", index, vector }));
    return [...embedded, { kind: "usage", promptTokens, completionTokens: 0 }];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.runtime.close?.();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** One thread and no graphics card: the same on every machine, and gentle to the tests beside it. */
export const quietly = {
  engineDir: "dir" in engine ? engine.dir : undefined,
  gpu: false,
  threads: 1,
  log: createLog({ level: "silent", name: "test" }),
} as const;

export function saidIn(events: readonly AnswerEvent[], kind: "text" | "reasoning" = "text"): string {
  return events.map((event) => (event.kind === kind && "text" in event ? event.text : "")).join("");
}

/** The calls of an answer, put together. */
export function callsIn(events: readonly AnswerEvent[]): { name: string; arguments: string }[] {
  const calls: { name: string; arguments: string }[] = [];
  for (const event of events) {
    if (event.kind === "tool-call-start") calls[event.index] = { name: event.name, arguments: "" };
    const call = event.kind === "tool-call-delta" ? calls[event.index] : undefined;
    if (call !== undefined && event.kind === "tool-call-delta") call.arguments += event.arguments;
  }
  return calls;
}

export function only<Kind extends AnswerEvent["kind"]>(
  events: readonly AnswerEvent[],
  kind: Kind,
): Extract<AnswerEvent, { kind: Kind }> | undefined {
  return events.find((event): event is Extract<AnswerEvent, { kind: Kind }> => event.kind === kind);
}
