import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { ManageProgress } from "#shared/protocol/job-bodies.ts";
import type { EmitEvents, ManageRun, Runtime } from "../../services/agent/runtimes/runtime.ts";

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
