import { type Clock, sleep, type Timer } from "#shared/process/clock.ts";
import type { ChatRun } from "../runtime.ts";
import { ModelLoading } from "./openai-fault.ts";
import type { ServedModel } from "./openai-profile.ts";

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

/** Interval at which waiting requests are checked for a model that is loading, by the server's last list. */
const loadingLookMs = 1_000;

/** A request that waits for its answer, and its model as the server's last list described it. */
interface Waiting extends Pick<ChatRun, "onProgress"> {
  readonly model: () => ServedModel;
}

/** Reports `loading` to the waiting requests of one server while its lists show their models as loading. */
export class LoadWatch {
  readonly #clock: Clock;
  readonly #waiting = new Set<Waiting>();
  /** One timer for all waiting requests. The timer stops at the first check without a waiting request. */
  #looks: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begin(waiting: Waiting): void {
    this.#waiting.add(waiting);
    this.#looks ??= this.#clock.every(loadingLookMs, () => this.#look());
  }

  end(waiting: Waiting): void {
    this.#waiting.delete(waiting);
  }

  #look(): void {
    for (const { model, onProgress } of this.#waiting) if (model().loading) onProgress("loading");
    if (this.#waiting.size === 0) this.stop();
  }

  stop(): void {
    this.#looks?.cancel();
    this.#looks = undefined;
  }
}
