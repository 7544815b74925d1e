import { modelsPerMachineMax, type Catalogue, type Model, aliasedId, latestTag } from "#shared/protocol/model.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { MemoryFacts, Presence } from "#shared/protocol/presence.ts";
import type { KnownModels } from "#shared/store/known-models.ts";

interface CataloguesOptions {
  /** Asks one boot of a machine for its catalogue. */
  readonly ask: (target: { machine: string; epoch: string }) => Promise<Catalogue>;
  readonly knownModels: KnownModels;
  /** True if a machine may offer a model. Without this option, it may offer every model. */
  readonly permits?: (machine: string, modelId: string) => boolean;
  /** The machines whose models run elsewhere. */
  readonly external?: ReadonlySet<string>;
  readonly clock: Clock;
  readonly log: Log;
}

type Residents = MemoryFacts["residents"];

interface CachedCatalogue {
  readonly epoch: string;
  readonly digest: string;
  /** The presence's list of models in memory that `catalogue` shows; undefined for what the catalogue itself told. */
  residents: Residents | undefined;
  /** The models that the machine's record permits, and in `withheld` the models that it offers without permission. */
  catalogue: Catalogue;
  readonly withheld: Catalogue;
  /** The models are not searched before this time for models that are due to be noted again. */
  rememberFromMs: number;
}

/**
 * A model that is still offered is noted again after this long, far below the time after which `KnownModels` forgets
 * it.
 */
const rememberAgainMs = 3_600_000;
/** The interval between two searches of a machine's models for models that are due. */
const rememberPaceMs = 60_000;

const nobody: readonly string[] = [];

/**
 * The models that each machine offers, by its latest answer and as far as its record permits. Presence carries only a
 * digest of the catalogue. A new digest therefore starts a fetch, and every fetch also notes the models in
 * `KnownModels`, which all gateways share.
 */
export class Catalogues {
  readonly #options: CataloguesOptions;
  readonly #kept = new Map<string, CachedCatalogue>();
  /** The machines of each model, so that a request in a large fleet visits only machines that have the model. */
  readonly #machines = new Map<string, string[]>();
  readonly #fetching = new Map<string, Promise<void>>();
  readonly #remembered = new Map<string, number>();
  /**
   * The names that each machine had noted in this hour. The bound keeps a machine that invents names from pushing out
   * those of others.
   */
  readonly #spending = new Map<string, { readonly sinceMs: number; names: number }>();

  constructor(options: CataloguesOptions) {
    this.#options = options;
  }

  /** Returns the models that this boot of the machine offers; empty while they are unknown. */
  of(presence: Presence): Catalogue {
    const kept = this.#kept.get(presence.machine);
    return kept?.epoch === presence.epoch && presence.runtime !== null ? kept.catalogue : [];
  }

  /** Returns the models that this boot of the machine offers although its record does not permit them. */
  withheld(presence: Presence): Catalogue {
    const kept = this.#kept.get(presence.machine);
    return kept?.epoch === presence.epoch && presence.runtime !== null ? kept.withheld : [];
  }

  /** Judges the catalogue of a machine again, because its record has changed. */
  believeAnew(machine: string): void {
    const kept = this.#kept.get(machine);
    if (kept === undefined) return;
    const { epoch, digest, catalogue, withheld } = kept;
    this.#keep(machine, this.#judged(machine, { epoch, digest, catalogue: [...catalogue, ...withheld] }));
  }

  /** Returns the machines that have reported exactly this model id. `of` says if a machine still offers it. */
  offering(modelId: string): readonly string[] {
    return this.#machines.get(modelId) ?? nobody;
  }

  /**
   * Fetches the catalogue of a machine when its digest is new. Called with every presence; it costs nothing when
   * nothing is new.
   */
  follow(presence: Presence): void {
    const { machine, epoch, catalogueDigest, runtime, state, memory } = presence;
    if (runtime === null || state === "gone") return;
    const kept = this.#kept.get(machine);
    if (kept?.epoch === epoch && kept.digest === catalogueDigest) {
      if (memory !== undefined && kept.residents !== memory.residents) this.#show(kept, memory.residents);
      this.#remember(machine, kept);
      return;
    }
    if (this.#fetching.has(machine)) return;
    const fetching = this.#fetch(presence).finally(() => this.#fetching.delete(machine));
    this.#fetching.set(machine, fetching);
  }

  /** Resolves when no fetch is under way. Until then a machine may offer a model that is not known yet. */
  async settled(): Promise<void> {
    await Promise.all(this.#fetching.values());
  }

  async #fetch(presence: Presence): Promise<void> {
    const { machine, epoch, catalogueDigest: digest } = presence;
    try {
      const catalogue = await this.#options.ask({ machine, epoch });
      const kept = this.#judged(machine, { epoch, digest, catalogue });
      this.#keep(machine, kept);
      this.#remember(machine, kept);
    } catch (error) {
      this.#options.log.debug(
        { err: error, machine },
        "a catalogue could not be fetched; the next presence tries again",
      );
    }
  }

  /** Shows in a catalogue which models are in memory now. */
  #show(kept: CachedCatalogue, residents: Residents): void {
    const loaded = new Set(residents.map(({ model }) => model));
    kept.catalogue = kept.catalogue.map((model) =>
      model.loaded === undefined ? model : { ...model, loaded: loaded.has(model.id) },
    );
    kept.residents = residents;
  }

  #judged(
    machine: string,
    { epoch, digest, catalogue }: { readonly epoch: string; readonly digest: string; readonly catalogue: Catalogue },
  ): CachedCatalogue {
    const { permits = () => true } = this.#options;
    const [offered, withheld] = [true, false].map((wanted) =>
      catalogue.filter(({ id }) => permits(machine, id) === wanted),
    );
    return {
      epoch,
      digest,
      residents: undefined,
      catalogue: offered ?? [],
      withheld: withheld ?? [],
      rememberFromMs: 0,
    };
  }

  #keep(machine: string, kept: CachedCatalogue): void {
    for (const { id } of this.#kept.get(machine)?.catalogue ?? []) {
      const others = (this.#machines.get(id) ?? nobody).filter((name) => name !== machine);
      if (others.length === 0) this.#machines.delete(id);
      else this.#machines.set(id, others);
    }
    this.#kept.set(machine, kept);
    for (const { id } of kept.catalogue) this.#machines.getOrInsertComputed(id, () => []).push(machine);
  }

  #remember(machine: string, kept: CachedCatalogue): void {
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
    const external = this.#options.external?.has(machine);
    this.#options.knownModels
      .remember({ machine, modelIds: due, seenAtMs: nowMs, external })
      .catch((error: unknown) => {
        for (const id of due) this.#remembered.delete(sighting(id));
        kept.rememberFromMs = 0;
        this.#options.log.warn({ err: error }, "the models on offer could not be noted for the other gateways");
      });
  }

  /** Returns how many more names a machine may have noted in this hour. */
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

/** `isExact` turns the alias off: `name:latest` then does not mean `name`. */
interface FindOptions {
  readonly isExact?: boolean | undefined;
}

/** Returns the model with this id, or with the id that it may stand for. */
export function findModel<Found extends Model>(
  models: readonly Found[],
  id: string,
  { isExact }: FindOptions = {},
): Found | undefined {
  const exact = withId(models, id);
  return exact !== undefined || isExact === true || !id.endsWith(latestTag) ? exact : withId(models, aliasedId(id));
}

/** Returns the machines among which `findModel` can find a model, from the machines that offer each id. */
export function findOffering(
  catalogues: Pick<Catalogues, "offering">,
  id: string,
  { isExact }: FindOptions = {},
): readonly string[] {
  const exact = catalogues.offering(id);
  const habitual = isExact !== true && id.endsWith(latestTag) ? catalogues.offering(aliasedId(id)) : [];
  if (habitual.length === 0) return exact;
  return exact.length === 0 ? habitual : [...new Set([...exact, ...habitual])];
}

function withId<Found extends Model>(models: readonly Found[], id: string): Found | undefined {
  for (const model of models) if (model.id === id) return model;
  return undefined;
}
