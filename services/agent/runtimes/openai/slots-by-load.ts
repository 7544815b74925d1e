import type { Clock, Timer } from "#shared/process/clock.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";

/** The slots of a server that reports neither a limit nor its load: as many as the most common servers run by default. */
const guessedSlots = 4;
const slotsMax = 256;
const lookIntervalMs = 2_000;

/** The requests that a server runs, and those that wait in it. */
export interface ServerLoad {
  readonly running: number;
  readonly waiting: number;
}

const gauge =
  /^(?:vllm:num_requests_(running|waiting)|sglang:num_(running|queue)_reqs)(?:\{[^\n]*\})? +(\d+(?:\.\d+)?)/gm;

/** Returns the load of all engines, from the metrics of vLLM or SGLang. Undefined for metrics of another server. */
export function loadIn(metrics: string): ServerLoad | undefined {
  const load = { running: 0, waiting: 0 };
  let isTold = false;
  for (const [, ofVllm, ofSglang, count] of metrics.matchAll(gauge)) {
    isTold = true;
    load[ofVllm === "running" || ofSglang === "running" ? "running" : "waiting"] += Number(count);
  }
  return isTold ? load : undefined;
}

/**
 * Returns the slots after a look at the load: one more while all of them are in use and nothing waits in the server, and
 * those that run when requests wait at two looks in a row. A request that has just arrived waits for a moment too.
 */
export function slotsAfter(slots: number, { running, waiting }: ServerLoad, waitedBefore: boolean): number {
  if (waiting > 0) return waitedBefore ? Math.max(1, Math.min(slots, running)) : slots;
  return running >= slots ? Math.min(slots + 1, slotsMax) : slots;
}

/** The slots of a server that reports no limit. They follow its load where it reports that, and are a guess elsewhere. */
export class SlotsByLoad {
  slots = guessedSlots;
  isGuess = true;
  readonly #connection: Pick<RuntimeConnection, "text">;
  readonly #clock: Clock;
  #isAsked = false;
  #waited = false;
  #looks: Timer | undefined;

  constructor({ connection, clock }: { readonly connection: Pick<RuntimeConnection, "text">; readonly clock: Clock }) {
    this.#connection = connection;
    this.#clock = clock;
  }

  /** Asks the server for its load once. One that reports it is looked at from then on. */
  async begin(signal: AbortSignal): Promise<void> {
    if (this.#isAsked) return;
    this.#isAsked = true;
    this.isGuess = (await this.#load(signal)) === undefined;
    if (!this.isGuess) this.#looks = this.#clock.every(lookIntervalMs, () => void this.#look());
  }

  close(): void {
    this.#looks?.cancel();
  }

  async #look(): Promise<void> {
    const load = await this.#load(AbortSignal.timeout(lookIntervalMs));
    if (load === undefined) return;
    this.slots = slotsAfter(this.slots, load, this.#waited);
    this.#waited = load.waiting > 0;
  }

  async #load(signal: AbortSignal): Promise<ServerLoad | undefined> {
    const metrics = await this.#connection.text({ path: "/metrics", signal }).catch(() => undefined);
    return metrics === undefined ? undefined : loadIn(metrics);
  }
}
