import { sleep, type Clock } from "#shared/process/clock.ts";
import type { LoadWatch } from "./load-watch.ts";
import { ModelLoading } from "./openai-fault.ts";
import type { ServedModel } from "./openai-profile.ts";
import type { ChatRun } from "../runtime.ts";

/** The wait before a request is repeated to a server that is loading a model. */
const askAgainMs = 500;

interface Server {
  readonly model: () => ServedModel;
  readonly loads: LoadWatch;
  readonly clock: Clock;
}

/** Repeats the request until the server has loaded the model, or until no client waits any more. */
export async function whenLoaded<Result>(
  { signal, onProgress }: Pick<ChatRun, "signal" | "onProgress">,
  { model, loads, clock }: Server,
  ask: () => Promise<Result>,
): Promise<Result> {
  const waiting = { model, onProgress };
  if (model().loaded === false) onProgress("loading");
  loads.begin(waiting);
  try {
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        if (!(error instanceof ModelLoading)) throw error;
        onProgress("loading");
        await sleep(clock, askAgainMs, signal);
      }
    }
  } finally {
    loads.end(waiting);
  }
}
