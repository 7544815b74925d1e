import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { Capabilities, OfferedModel } from "#shared/protocol/model.ts";
import { chatBody, type ChatBody, type TextToContinue, type ManageProgress } from "#shared/protocol/job-bodies.ts";
import { refuseIncapable } from "../../services/agent/runtimes/refuse-unsupported.ts";
import type { Runtime, Silence, CompleteRun, EmitEvents, ManageRun } from "../../services/agent/runtimes/runtime.ts";
import { completeModel } from "../../services/agent/models/model-set.ts";

export interface ChatWish extends Partial<ChatBody> {
  readonly model: string;
  /** Short for one message of the user. */
  readonly says?: string;
}

const everything: Capabilities = { completion: true, vision: true, embedding: true, tools: true, thinking: true };

/**
 * One chat on a runtime, as an agent would ask for it: everything it yields until its end, batch by batch. The model is
 * able to do anything unless the test says what it can do.
 */
export async function* chatOn(
  runtime: Runtime,
  wish: ChatWish,
  options: {
    signal?: AbortSignal;
    onProgress?: (silence?: Silence) => void;
    capabilities?: Capabilities;
    contextWindow?: number;
  } = {},
): AsyncGenerator<readonly AnswerEvent[]> {
  const { model, says = "Hello", ...fields } = wish;
  const body = chatBody.parse({ messages: [{ role: "user", content: says }], ...fields });
  const { signal = new AbortController().signal, onProgress = () => {} } = options;
  const { capabilities = everything, contextWindow = 4_096 } = options;
  refuseIncapable({ model, capabilities, body });
  yield* batchesOf((emit) => runtime.chat({ model, capabilities, contextWindow, body, signal, onProgress }, emit));
}

export async function eventsOf(batches: AsyncIterable<readonly AnswerEvent[]>): Promise<AnswerEvent[]> {
  return (await Array.fromAsync(batches)).flat();
}

export function textOf(events: readonly AnswerEvent[]): string {
  return events.map((event) => (event.kind === "text" ? event.text : "")).join("");
}

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

type Run = (emit: EmitEvents) => Promise<void>;

/** All events that a run emits until its end. */
export async function emittedBy(run: Run): Promise<AnswerEvent[]> {
  const all: AnswerEvent[] = [];
  await run((events) => void all.push(...events));
  return all;
}

/**
 * The batches that a run emits, read one by one: the run goes on once its batch is read. A reader that leaves early
 * fails the run's next batch, as a taker that fails does.
 */
export async function* batchesOf(run: Run): AsyncGenerator<readonly AnswerEvent[]> {
  const waiting: (readonly AnswerEvent[])[] = [];
  let room = Promise.withResolvers<void>();
  let arrival = Promise.withResolvers<void>();
  let end: { readonly error?: unknown } | undefined;
  const ended = (how: { readonly error?: unknown }): void => {
    end = how;
    arrival.resolve();
  };
  const over = run((events) => {
    waiting.push(events);
    arrival.resolve();
    return room.promise;
  }).then(
    () => ended({}),
    (error: unknown) => ended({ error }),
  );
  try {
    for (;;) {
      await arrival.promise;
      arrival = Promise.withResolvers();
      for (const events of waiting.splice(0)) yield events;
      if (end !== undefined && "error" in end) throw end.error;
      if (end !== undefined) return;
      room.resolve();
      room = Promise.withResolvers();
    }
  } finally {
    room.promise.catch(() => undefined);
    room.reject(new Error("the test reads no further"));
    await over;
  }
}

/** Runs a model action to its end, and returns the progress that it reported. */
export async function managed(runtime: Runtime, run: Omit<ManageRun, "onProgress">): Promise<ManageProgress[]> {
  const progress: ManageProgress[] = [];
  const manage = runtime.manages?.[run.action];
  if (manage === undefined) throw new Error(`${runtime.name} cannot ${run.action} a model`);
  await manage({ ...run, onProgress: (each) => void progress.push(each) });
  return progress;
}

/** Emits the batches of a generator, for a runtime that a test writes as one. */
export async function emitEach(batches: AsyncIterable<readonly AnswerEvent[]>, emit: EmitEvents): Promise<void> {
  for await (const events of batches) await emit(events);
}

/** When models of unknown age were seen for the first time, in tests. */
export const firstSeenSeconds = 1_767_225_600;

/** The models of a runtime as its machine would offer them. */
export async function offeredBy(
  runtime: Runtime,
  signal: AbortSignal = new AbortController().signal,
): Promise<OfferedModel[]> {
  const described = await runtime.catalogue(signal);
  return described.flatMap((each) => {
    const facts = { id: each.id, described: each, settings: undefined, runtime: runtime.name };
    return completeModel({ ...facts, firstSeenSeconds: () => firstSeenSeconds }) ?? [];
  });
}
