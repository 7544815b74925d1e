import type { Clock, Timer } from "#shared/process/clock.ts";
import type { ServedModel } from "./openai-profile.ts";
import type { ChatRun } from "../runtime.ts";

/** How often a server that loads a model before it answers is looked at, by what its last list said. */
const loadingLookMs = 1_000;

/** A request that waits for its answer, and its model as the server's last list told it. */
interface Waiting extends Pick<ChatRun, "onProgress"> {
  readonly model: () => ServedModel;
}

/** Tells the requests to one server, for as long as its lists say so, that their models are being loaded. */
export class LoadWatch {
  readonly #clock: Clock;
  /** No set, which would leave garbage behind that keeps what came after it alive (`shared/process/passing.ts`). */
  readonly #waiting: Waiting[] = [];
  /** One for all of them, which goes on for a look after the last one. */
  #looks: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begin(waiting: Waiting): void {
    this.#waiting.push(waiting);
    this.#looks ??= this.#clock.every(loadingLookMs, () => this.#look());
  }

  end(waiting: Waiting): void {
    const place = this.#waiting.indexOf(waiting);
    if (place >= 0) this.#waiting.splice(place, 1);
  }

  #look(): void {
    for (const { model, onProgress } of this.#waiting) if (model().loading) onProgress("loading");
    if (this.#waiting.length === 0) this.stop();
  }

  stop(): void {
    this.#looks?.cancel();
    this.#looks = undefined;
  }
}
