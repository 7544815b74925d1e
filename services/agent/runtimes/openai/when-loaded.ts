import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { sleep, type Clock } from "#shared/process/clock.ts";
import { ModelLoading } from "./openai-fault.ts";
import type { ServedModel } from "./openai-profile.ts";
import type { ChatRun } from "../runtime.ts";

/** How long to wait before a server that is loading a model is asked again. */
const askAgainMs = 500;

/** How often a server that loads a model before it answers is looked at, by what its last list said. */
const loadingLookMs = 1_000;

/** A server that still loads the model is asked again until it has, or nobody waits any more. */
export async function* whenLoaded(
  { signal, onProgress }: Pick<ChatRun, "signal" | "onProgress">,
  server: { readonly model: () => ServedModel; readonly clock: Clock },
  ask: () => AsyncIterable<readonly AnswerEvent[]>,
): AsyncGenerator<readonly AnswerEvent[]> {
  const { model, clock } = server;
  if (model().loaded === false) onProgress("loading");
  const looks = clock.every(loadingLookMs, () => model().loading && onProgress("loading"));
  try {
    for (;;) {
      try {
        yield* ask();
        return;
      } catch (error) {
        if (!(error instanceof ModelLoading)) throw error;
        onProgress("loading");
        await sleep(clock, askAgainMs, signal);
      }
    }
  } finally {
    looks.cancel();
  }
}
