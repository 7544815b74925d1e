import { Fault } from "#shared/fault/fault.ts";
import { modelIdCharactersMax, type OfferedModel } from "#shared/model/model.ts";
import type { Clock, Timer } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import { completeModel } from "./complete-model.ts";
import { settingsOf, type ModelSettingsFile } from "./model-settings.ts";
import { Offer, type Route } from "./offer.ts";
import type { DescribedModel, Runtime } from "../runtimes/runtime.ts";
import type { RuntimeSource } from "./runtime-source.ts";
import { UniqueIds } from "./unique-ids.ts";
import { SourceWatch } from "./watch-source.ts";

interface WatchOptions {
  /** Where runtimes may be. Of two that offer the same model, the first has the id. */
  readonly sources: readonly RuntimeSource[];
  /** What to offer at the start when nothing is found, until something is. */
  readonly standIn?: (() => Runtime) | undefined;
  readonly settings?: ModelSettingsFile | undefined;
  /** Since when a model is known whose runtime does not tell, in seconds. */
  readonly firstSeen: (model: string) => number;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
}

/** Of so many models it is remembered that their absence was told. */
const leftOutMax = 10_000;

/** Where the stand-in is, so that its models have lanes and ids like all others. */
const standInPlace = "demonstration";

/**
 * Knows the runtimes that this agent fronts and what they offer together just now. A runtime that goes takes its models
 * with it and no others; the machine offers something for as long as one of them answers.
 */
export class RuntimeWatch {
  readonly #options: WatchOptions;
  readonly #watches: readonly SourceWatch[];
  readonly #ids = new UniqueIds();
  readonly #listeners = new Set<() => void>();
  readonly #leftOut = new Set<string>();
  #standIn: { readonly runtime: Runtime; readonly models: readonly DescribedModel[] } | undefined;
  #offer: Offer | undefined;
  #asking: Promise<void> | undefined;
  #timer: Timer | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#watches = options.sources.map((source) => new SourceWatch({ ...options, source }));
  }

  get offer(): Offer | undefined {
    return this.#offer;
  }

  /** Where was looked in vain, for the operator. */
  get places(): string {
    return this.#watches.map(({ place }) => place).join(", ");
  }

  /** Tells of every change of the offer. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Resolves after the first look, whether or not there is a runtime. */
  async start(): Promise<void> {
    await this.#ask();
    await this.#putStandIn();
    this.#timer = this.#options.clock.every(this.#options.timing.cataloguePollMs, () => {
      for (const watch of this.#watches) void this.#lookAt(watch);
    });
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    await Promise.allSettled(this.#watches.map((watch) => watch.close()));
  }

  /** What the runtimes tell now, or the fault `runtime_offline` when none does. Callers at the same time share one look. */
  async ask(): Promise<readonly OfferedModel[]> {
    await this.#ask();
    const answering = this.#watches.filter((watch) => watch.answersNow).map(({ found }) => found?.runtime);
    const { routes = [] } = this.#offer ?? {};
    if (answering.length === 0 && this.#standIn === undefined) {
      throw new Fault("runtime_offline", { message: "The model server on the GPU machine does not answer." });
    }
    return routes
      .filter(({ runtime }) => answering.includes(runtime) || runtime === this.#standIn?.runtime)
      .map(({ model }) => model);
  }

  #ask(): Promise<void> {
    this.#asking ??= this.#lookEverywhere().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  /**
   * A place that is slow to answer holds up no other: each is offered as soon as it is known. Only the first offer is
   * made of all together, so that not chance decides which of two runtimes has an id.
   */
  async #lookEverywhere(): Promise<void> {
    await Promise.all(this.#watches.map((watch) => this.#lookAt(watch)));
    this.#takeStock();
  }

  async #lookAt(watch: SourceWatch): Promise<void> {
    const isFirst = this.#timer === undefined;
    await watch.look();
    if (!isFirst) this.#takeStock();
  }

  async #putStandIn(): Promise<void> {
    const { standIn } = this.#options;
    if (standIn === undefined || this.#offer !== undefined) return;
    const runtime = standIn();
    this.#standIn = { runtime, models: await runtime.catalogue(new AbortController().signal) };
    this.#takeStock();
  }

  #takeStock(): void {
    const found = this.#watches.flatMap(({ place, found: here }) => (here === undefined ? [] : [{ place, ...here }]));
    if (found.length > 0) this.#standIn = undefined;
    const offering = this.#standIn === undefined ? found : [{ place: standInPlace, ...this.#standIn }];
    const runtimes = offering.map(({ runtime }) => runtime);
    const routes = offering.flatMap((here) =>
      inOrder(here.models).flatMap((described) => this.#route(here, described)),
    );
    this.#take(runtimes.length === 0 ? undefined : new Offer(runtimes, withoutTwins(routes)));
  }

  #route({ place, runtime }: { place: string; runtime: Runtime }, described: DescribedModel): Route[] {
    const { settings = {}, firstSeen } = this.#options;
    const { id: ownId } = described;
    if (ownId.length > modelIdCharactersMax) {
      this.#tellLeftOut(`${runtime.name}: ${ownId}`);
      return [];
    }
    const id = this.#ids.idFor({ place, runtime: runtime.name, id: ownId });
    const model = completeModel({
      id,
      described,
      settings: settingsOf(settings, id),
      runtime: runtime.name,
      firstSeenSeconds: () => firstSeen(`${runtime.name} ${ownId}`),
    });
    if (model === undefined) {
      this.#tellLeftOut(`${runtime.name}: ${ownId}`);
      return [];
    }
    return [{ runtime, ownId, model, lane: runtime.slotsPerModel ? `${place} ${ownId}` : place }];
  }

  #tellLeftOut(model: string): void {
    const name = model.slice(0, 300);
    if (this.#leftOut.has(name)) return;
    if (this.#leftOut.size >= leftOutMax) this.#leftOut.clear();
    this.#leftOut.add(name);
    this.#options.log.info(
      { model: name },
      "a model is left out: it can do nothing that is asked here, or its name is no id",
    );
  }

  #take(offer: Offer | undefined): void {
    const before = this.#offer;
    if (before === undefined ? offer === undefined : offer !== undefined && before.equals(offer)) return;
    this.#offer = offer;
    const { log } = this.#options;
    if (offer === undefined) log.warn("no runtime answers any more; this machine offers nothing until one does");
    else log.info({ runtime: offer.names, models: offer.catalogue.length }, "the catalogue of this machine");
    for (const listener of this.#listeners) listener();
  }
}

/** Runtimes change the order of their lists as they like, which is no change of what they offer. */
function inOrder(models: readonly DescribedModel[]): readonly DescribedModel[] {
  return models.toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

/** A runtime that lists a model twice has it once. */
function withoutTwins(routes: readonly Route[]): Route[] {
  return [...new Map(routes.map((route) => [route.model.id, route])).values()];
}
