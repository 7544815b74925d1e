import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { TextToContinue } from "#shared/protocol/job-bodies.ts";
import type { CompleteRun, Runtime } from "../../services/agent/runtimes/runtime.ts";
import { batchesOf } from "./emitted.ts";

export interface TextWish extends Partial<TextToContinue> {
  readonly model: string;
}

const able = { completion: true, vision: false, embedding: false, tools: false, thinking: false };

/** One text continued by a runtime, as an agent would ask for it: everything it yields until its end, batch by batch. */
export async function* textOn(
  runtime: Runtime,
  { model, prompt = "Once upon a time", ...fields }: TextWish,
  options: Partial<Pick<CompleteRun, "signal" | "onProgress" | "contextWindow">> = {},
): AsyncGenerator<readonly AnswerEvent[]> {
  if (runtime.complete === undefined) throw new Error(`${runtime.name} continues no texts`);
  const { signal = new AbortController().signal, onProgress = () => {}, contextWindow = 4_096 } = options;
  const body = { prompt, ...fields };
  const run = { model, capabilities: able, contextWindow, body, signal, onProgress };
  yield* batchesOf(async (emit) => runtime.complete?.(run, emit));
}
