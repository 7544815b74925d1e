import type { Catalogue } from "#shared/model/model.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import type { KnownModels } from "./known-models.ts";

interface CataloguesOptions {
  /** Asks one boot of a machine for its catalogue. */
  readonly ask: (target: { machine: string; epoch: string }) => Promise<Catalogue>;
  readonly knownModels: KnownModels;
  readonly clock: Clock;
  readonly log: Log;
}

interface Kept {
  readonly epoch: string;
  readonly digest: string;
  readonly catalogue: Catalogue;
}

/** A model that is still offered is noted again after this long, far below what `KnownModels` forgets. */
const rememberAgainMs = 3_600_000;

/**
 * What each machine offers, as it last said. Presence carries only a digest of it, so a catalogue is fetched when the
 * digest is new, and every fetch also tells the models that all gateways know.
 */
export class Catalogues {
  readonly #options: CataloguesOptions;
  readonly #kept = new Map<string, Kept>();
  readonly #fetching = new Map<string, Promise<void>>();
  readonly #remembered = new Map<string, number>();

  constructor(options: CataloguesOptions) {
    this.#options = options;
  }

  /** What this boot of the machine offers, or nothing while that is not known. */
  of(presence: Presence): Catalogue {
    const kept = this.#kept.get(presence.machine);
    return kept?.epoch === presence.epoch && presence.runtime !== null ? kept.catalogue : [];
  }

  /** To be called with every presence; it costs nothing when nothing is new. */
  follow(presence: Presence): void {
    const { machine, epoch, catalogueDigest, runtime, state } = presence;
    if (runtime === null || state === "gone") return;
    const kept = this.#kept.get(machine);
    if (kept?.epoch === epoch && kept.digest === catalogueDigest) {
      this.#remember(kept.catalogue);
      return;
    }
    if (this.#fetching.has(machine)) return;
    const fetching = this.#fetch(presence).finally(() => this.#fetching.delete(machine));
    this.#fetching.set(machine, fetching);
  }

  /** Resolves when nothing is being fetched: until then a model may be offered that is not known yet. */
  async settled(): Promise<void> {
    await Promise.all(this.#fetching.values());
  }

  async #fetch(presence: Presence): Promise<void> {
    const { machine, epoch, catalogueDigest: digest } = presence;
    try {
      const catalogue = await this.#options.ask({ machine, epoch });
      this.#kept.set(machine, { epoch, digest, catalogue });
      this.#remember(catalogue);
    } catch (error) {
      this.#options.log.debug(
        { err: error, machine },
        "a catalogue could not be fetched; the next presence tries again",
      );
    }
  }

  #remember(catalogue: Catalogue): void {
    const nowMs = this.#options.clock.wall();
    const due = catalogue.map(({ id }) => id).filter((id) => nowMs - (this.#remembered.get(id) ?? 0) > rememberAgainMs);
    if (due.length === 0) return;
    for (const id of due) this.#remembered.set(id, nowMs);
    this.#options.knownModels.remember({ modelIds: due, seenAtMs: nowMs }).catch((error: unknown) => {
      for (const id of due) this.#remembered.delete(id);
      this.#options.log.warn({ err: error }, "the models on offer could not be noted for the other gateways");
    });
  }
}
