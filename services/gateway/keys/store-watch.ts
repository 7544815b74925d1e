import { type KeyStore, unfoundedStore } from "#shared/records/key-store.ts";
import type { StoreClock } from "#shared/store/open-key-store.ts";
import type { Timer } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";

/** Interval at which a gateway asks its key store for its time, and whether it holds keys. */
const lookEveryMs = 2_000;

interface StoreWatchOptions {
  readonly keys: Pick<KeyStore, "state">;
  readonly clock: StoreClock;
  /** Tells if the store ever judged a key for this gateway. */
  readonly judged: { readonly foundedOnce: boolean };
  readonly log: Pick<Log, "info" | "warn">;
}

/** Watches the state of the key store beside its keys: whether it was emptied, and how far apart the clocks are. */
export class StoreWatch {
  readonly #options: StoreWatchOptions;
  readonly #timer: Timer;
  #founded: boolean | undefined;
  #everFounded = false;
  #reported: readonly string[] = [];

  constructor(options: StoreWatchOptions) {
    this.#options = options;
    this.#timer = options.clock.every(lookEveryMs, () => void this.look().catch(() => undefined));
  }

  /** Asks the store for its state. Fails while the store is away, as `KeyStore.ready` does. */
  async look(): Promise<void> {
    const { keys, clock } = this.#options;
    const askedAtMs = clock.now();
    const { founded, wallMs } = await keys.state();
    if (wallMs !== undefined) clock.learn(wallMs, askedAtMs);
    this.#founded = founded;
    this.#everFounded ||= founded;
    this.#tell();
  }

  /** True if the store held keys while this gateway ran, and holds none now. */
  get emptied(): boolean {
    return (this.#everFounded || this.#options.judged.foundedOnce) && this.#founded === false;
  }

  /** True if the store held keys at its last answer. */
  get founded(): boolean {
    return this.#founded === true;
  }

  get skewMs(): number {
    return this.#options.clock.skewMs;
  }

  /** Faults that an operator has to fix, in words. */
  get faults(): readonly string[] {
    const { internal = "the key store holds no keys" } = unfoundedStore();
    const unfounded =
      this.#founded === false ? [this.emptied ? `it was emptied meanwhile: ${internal}` : internal] : [];
    const { fault } = this.#options.clock;
    return fault === undefined ? unfounded : [...unfounded, fault];
  }

  stop(): void {
    this.#timer.cancel();
  }

  /** Logs one line when a fault begins, and one when all faults are gone. */
  #tell(): void {
    const { faults } = this;
    const { log } = this.#options;
    const kinds = faults.map((fault) => fault.replace(/\d+/g, ""));
    faults.forEach((fault, at) => {
      if (!this.#reported.includes(kinds[at] ?? "")) log.warn(fault);
    });
    if (faults.length === 0 && this.#reported.length > 0) log.info("the key store and its clock are as they should be");
    this.#reported = kinds;
  }
}
