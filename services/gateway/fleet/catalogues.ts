import { modelsPerMachineMax, type Catalogue } from "#shared/model/model.ts";
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
  /** Its models are not looked through before, for any that is due to be noted again. */
  rememberFromMs: number;
}

/** A model that is still offered is noted again after this long, far below what `KnownModels` forgets. */
const rememberAgainMs = 3_600_000;
/** Whether any is due is looked at so often. */
const rememberPaceMs = 60_000;

const nobody: readonly string[] = [];

/**
 * What each machine offers, as it last said. Presence carries only a digest of it, so a catalogue is fetched when the
 * digest is new, and every fetch also tells the models that all gateways know.
 */
export class Catalogues {
  readonly #options: CataloguesOptions;
  readonly #kept = new Map<string, Kept>();
  /** The same by model: of a large fleet nobody is looked at who does not have it. */
  readonly #machines = new Map<string, string[]>();
  readonly #fetching = new Map<string, Promise<void>>();
  readonly #remembered = new Map<string, number>();
  /** A machine that makes up names must not push out those of the others, so it has only so many an hour. */
  readonly #spending = new Map<string, { readonly sinceMs: number; names: number }>();

  constructor(options: CataloguesOptions) {
    this.#options = options;
  }

  /** What this boot of the machine offers, or nothing while that is not known. */
  of(presence: Presence): Catalogue {
    const kept = this.#kept.get(presence.machine);
    return kept?.epoch === presence.epoch && presence.runtime !== null ? kept.catalogue : [];
  }

  /** The machines that have said that they offer this very model; whether they still do says `of`. */
  offering(modelId: string): readonly string[] {
    return this.#machines.get(modelId) ?? nobody;
  }

  /** To be called with every presence; it costs nothing when nothing is new. */
  follow(presence: Presence): void {
    const { machine, epoch, catalogueDigest, runtime, state } = presence;
    if (runtime === null || state === "gone") return;
    const kept = this.#kept.get(machine);
    if (kept?.epoch === epoch && kept.digest === catalogueDigest) {
      this.#remember(machine, kept);
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
      const kept = { epoch, digest, catalogue, rememberFromMs: 0 };
      this.#keep(machine, kept);
      this.#remember(machine, kept);
    } catch (error) {
      this.#options.log.debug(
        { err: error, machine },
        "a catalogue could not be fetched; the next presence tries again",
      );
    }
  }

  #keep(machine: string, kept: Kept): void {
    for (const { id } of this.#kept.get(machine)?.catalogue ?? []) {
      const others = (this.#machines.get(id) ?? nobody).filter((name) => name !== machine);
      if (others.length === 0) this.#machines.delete(id);
      else this.#machines.set(id, others);
    }
    this.#kept.set(machine, kept);
    for (const { id } of kept.catalogue) this.#machines.getOrInsertComputed(id, () => []).push(machine);
  }

  #remember(machine: string, kept: Kept): void {
    const nowMs = this.#options.clock.wall();
    if (nowMs < kept.rememberFromMs) return;
    kept.rememberFromMs = nowMs + rememberPaceMs;
    const sighting = (id: string): string => `${machine} ${id}`;
    const due = kept.catalogue
      .map(({ id }) => id)
      .filter((id) => nowMs - (this.#remembered.get(sighting(id)) ?? 0) > rememberAgainMs)
      .slice(0, this.#namesLeft(machine, nowMs));
    if (due.length === 0) return;
    this.#spent(machine).names += due.length;
    for (const [seen, seenAtMs] of this.#remembered) {
      if (nowMs - seenAtMs > rememberAgainMs) this.#remembered.delete(seen);
    }
    for (const id of due) this.#remembered.set(sighting(id), nowMs);
    this.#options.knownModels.remember({ machine, modelIds: due, seenAtMs: nowMs }).catch((error: unknown) => {
      for (const id of due) this.#remembered.delete(sighting(id));
      kept.rememberFromMs = 0;
      this.#options.log.warn({ err: error }, "the models on offer could not be noted for the other gateways");
    });
  }

  /** How many more names a machine may have noted in this hour. */
  #namesLeft(machine: string, nowMs: number): number {
    const spent = this.#spent(machine);
    if (nowMs - spent.sinceMs > rememberAgainMs) this.#spending.set(machine, { sinceMs: nowMs, names: 0 });
    return modelsPerMachineMax - this.#spent(machine).names;
  }

  #spent(machine: string): { readonly sinceMs: number; names: number } {
    const known = this.#spending.get(machine);
    if (known !== undefined) return known;
    const spent = { sinceMs: this.#options.clock.wall(), names: 0 };
    this.#spending.set(machine, spent);
    return spent;
  }
}
