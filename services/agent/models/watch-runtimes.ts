import { Fault } from "#shared/fault/fault.ts";
import { modelIdCharactersMax, type OfferedModel } from "#shared/protocol/model.ts";
import type { Timer } from "#shared/process/clock.ts";
import type { AgentContext } from "../context.ts";
import type { DescribedModel, Runtime } from "../runtimes/runtime.ts";
import {
  completeModel,
  type ModelSettingsFile,
  ModelSet,
  type ServedModel,
  settingsOf,
  UniqueIds,
} from "./model-set.ts";
import type { RuntimeSource } from "./detect.ts";
import { type FactsOptions, ModelFacts } from "./model-facts.ts";
import { type ProverOptions, SeamProver } from "./seam-prover.ts";
import { type RuntimeWork, SourceWatch } from "./watch-source.ts";

interface WatchOptions
  extends AgentContext, Pick<FactsOptions, "memory" | "measurements">, Pick<ProverOptions, "proofs"> {
  /** The locations where runtimes may be. If two runtimes offer the same model, the first one gets the id. */
  readonly sources: readonly RuntimeSource[];
  /** Creates the runtime to offer at the start when none is found, until one is. */
  readonly standIn?: (() => Runtime) | undefined;
  readonly settings?: ModelSettingsFile | undefined;
  /** Returns when this machine first saw a model, in seconds; for runtimes that do not report it. */
  readonly firstSeen: (model: string) => number;
}

/** The jobs of this agent, as far as runtimes are judged by them. */
export interface JobsHere {
  /** Returns what jobs show of a runtime. */
  workOn(runtime: Runtime): RuntimeWork;
  /** True if no job runs or waits, and no model is being loaded for one. */
  isIdle(): boolean;
}

/** Bounds the left-out models that are remembered as logged. */
const leftOutMax = 10_000;

/** The location of the stand-in, so that its models have lanes and ids like all others. */
const standInLocation = "demonstration";

/**
 * Watches the runtimes that this agent fronts and builds their joint offer. A runtime that goes away takes only its own
 * models with it. The machine has an offer as long as one runtime answers.
 */
export class RuntimeWatch {
  /** The measurements of the models. */
  readonly facts: ModelFacts;
  readonly seams: SeamProver;
  /** The models that this machine offers now. */
  offer: ModelSet | undefined;
  readonly #options: WatchOptions;
  readonly #watches: readonly SourceWatch[];
  readonly #ids = new UniqueIds();
  readonly #listeners = new Set<() => void>();
  readonly #leftOut = new Set<string>();
  #standIn: { readonly runtime: Runtime; readonly models: readonly DescribedModel[] } | undefined;
  #jobs: JobsHere = { workOn: () => ({ running: false, heardAtMs: -Infinity }), isIdle: () => true };
  #timer: Timer | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.facts = new ModelFacts(options);
    const served = (): readonly ServedModel[] => this.offer?.served ?? [];
    const isIdle = (): boolean => this.#jobs.isIdle();
    this.seams = new SeamProver({ ...options, served, isIdle, onProved: () => this.#takeStock() });
    this.#watches = options.sources.map(
      (source) => new SourceWatch({ ...options, source, workOn: (runtime) => this.#jobs.workOn(runtime) }),
    );
  }

  /** The locations that are watched, for the operator. */
  get locations(): string {
    return this.#watches.map(({ location }) => location).join(", ");
  }

  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Heeds the jobs of this agent from now on. */
  heed(jobs: JobsHere): void {
    this.#jobs = jobs;
  }

  /** Returns when a runtime last did not answer a look. */
  silentAtMs(runtime: Runtime): number {
    return this.#watches.find(({ found }) => found?.runtime === runtime)?.silentAtMs ?? -Infinity;
  }

  /** The answers of the runtimes that had bytes which are no UTF-8. */
  get answersNotUtf8(): number {
    return this.#watches.reduce((sum, { found }) => sum + (found?.runtime.answersNotUtf8 ?? 0), 0);
  }

  /** Starts watching. Resolves after the first look, with or without a runtime. */
  async start(): Promise<void> {
    await this.#lookEverywhere();
    await this.#putStandIn();
    this.#timer = this.#options.clock.every(this.#options.timing.cataloguePollMs, () => {
      for (const watch of this.#watches) void this.#lookAt(watch);
    });
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    void this.seams.stop();
    await Promise.allSettled(this.#watches.map((watch) => watch.close()));
  }

  /**
   * Returns the models that the runtimes list now, or throws the fault `runtime_offline` when no runtime answers.
   * Concurrent callers share the look at each location.
   */
  async ask(): Promise<readonly OfferedModel[]> {
    await this.#lookEverywhere();
    const answering = this.#watches.filter((watch) => watch.answersNow).map(({ found }) => found?.runtime);
    const { served = [] } = this.offer ?? {};
    if (answering.length === 0 && this.#standIn === undefined) {
      throw new Fault("runtime_offline", { message: "The model server on the GPU machine does not answer." });
    }
    return served
      .filter(({ runtime }) => answering.includes(runtime) || runtime === this.#standIn?.runtime)
      .map(({ model }) => model);
  }

  /**
   * Looks at all locations. A slow location delays no other: each runtime is offered as soon as it is known. Only the first
   * offer waits for all locations, so that timing does not decide which of two runtimes gets an id.
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
    if (standIn === undefined || this.offer !== undefined) return;
    const runtime = standIn();
    this.#standIn = { runtime, models: await runtime.catalogue(new AbortController().signal) };
    this.#takeStock();
  }

  #takeStock(): void {
    const found = this.#watches.flatMap(({ location, found: here }) =>
      here === undefined ? [] : [{ location, ...here }],
    );
    if (found.length > 0) this.#standIn = undefined;
    const offering = this.#standIn === undefined ? found : [{ location: standInLocation, ...this.#standIn }];
    const runtimes = offering.map(({ runtime }) => runtime);
    const served = offering.flatMap((here) => {
      // Runtimes change the order of their lists, which is no change of the offer.
      const inOrder = here.models.toSorted((a, b) => (a.id < b.id ? -1 : 1));
      return inOrder.flatMap((described) => this.#servedBy(here, described));
    });
    this.#take(runtimes.length === 0 ? undefined : new ModelSet(runtimes, served));
    this.seams.look();
  }

  #servedBy({ location, runtime }: { location: string; runtime: Runtime }, described: DescribedModel): ServedModel[] {
    const { settings = {}, firstSeen } = this.#options;
    const { id: ownId } = described;
    if (ownId.length > modelIdCharactersMax) {
      this.#tellLeftOut(`${runtime.name}: ${ownId}`);
      return [];
    }
    const id = this.#ids.idFor({ location, runtime: runtime.name, id: ownId });
    const model = completeModel({
      id,
      described,
      settings: settingsOf(settings, id),
      runtime: runtime.name,
      counts: runtime.count !== undefined,
      firstSeenSeconds: () => firstSeen(`${runtime.name} ${ownId}`),
    });
    if (model === undefined) {
      this.#tellLeftOut(`${runtime.name}: ${ownId}`);
      return [];
    }
    const lane = runtime.slotsPerModel ? `${location} ${ownId}` : location;
    const { memoryBytes } = described;
    const memoryMb = memoryBytes === undefined ? undefined : memoryBytes / 1_000_000;
    return [
      {
        runtime,
        ownId,
        model: { ...model, ...this.facts.learnt(model, memoryMb), ...this.seams.proved(runtime, model) },
        lane,
      },
    ];
  }

  #tellLeftOut(model: string): void {
    const name = model.slice(0, 300);
    if (this.#leftOut.has(name)) return;
    if (this.#leftOut.size >= leftOutMax) this.#leftOut.clear();
    this.#leftOut.add(name);
    this.#options.log.info(
      { model: name },
      "a model is left out: it has no supported capability, or its name is not a valid id",
    );
  }

  #take(offer: ModelSet | undefined): void {
    const before = this.offer;
    if (before === undefined ? offer === undefined : offer !== undefined && before.equals(offer)) return;
    this.offer = offer;
    this.facts.memoryChanged();
    const { log } = this.#options;
    if (offer === undefined) log.warn("no runtime answers any more; this machine offers nothing until one does");
    else if (offer.digest !== before?.digest)
      log.info({ runtime: offer.names, models: offer.catalogue.length }, "the catalogue of this machine");
    for (const listener of this.#listeners) listener();
  }
}
