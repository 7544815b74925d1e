import { Fault } from "#shared/fault/fault.ts";
import type { ManageAction } from "#shared/protocol/job-bodies.ts";
import type { DescribedModel, ManageRun, Runtime } from "../../../services/agent/runtimes/runtime.ts";
import { stubDescribed, StubRuntime } from "./stub-runtime.ts";

const megabyte = 1_000_000;

/** A runtime whose models lie in a memory, as its test lets them. It notes every load and unload in their order. */
export class LoadingRuntime extends StubRuntime {
  readonly slotsPerModel = true;
  readonly steps: string[] = [];
  /** The memory as its machine reports it, and as it really is. */
  readonly memory: { totalMb: number; freeMb: number };
  reallyMb: number;
  /** True while it answers nothing, as when it is started anew. */
  isAway = false;
  readonly #sizes: Map<string, number>;
  readonly #loaded = new Set<string>();
  readonly #underWay = new Map<string, PromiseWithResolvers<void>>();
  /** The cause for which the loads of a model fail. */
  readonly broken = new Map<string, Fault>();
  readonly manages: NonNullable<Runtime["manages"]> = {
    load: (run) => this.#load(run),
    unload: (run) => this.#unload(run),
    pull: (run) => this.#pull(run),
  };

  constructor({
    sizes,
    totalMb,
    slots = 4,
  }: {
    sizes: Readonly<Record<string, number>>;
    totalMb: number;
    slots?: number;
  }) {
    super({ slots, models: [] });
    this.#sizes = new Map(Object.entries(sizes));
    this.memory = { totalMb, freeMb: totalMb };
    this.reallyMb = totalMb;
  }

  get loaded(): string[] {
    return [...this.#loaded];
  }

  override async catalogue(): Promise<readonly DescribedModel[]> {
    if (this.isAway) throw new Error("connection refused");
    return Array.from(this.#sizes, ([id, sizeMb]) => ({
      ...stubDescribed(id),
      sizeBytes: sizeMb * megabyte,
      memoryBytes: sizeMb * megabyte,
      loaded: this.#loaded.has(id),
    }));
  }

  /** The load of a model comes to its end. */
  finishLoad(model: string): void {
    this.#underWay.get(model)?.resolve();
  }

  /** The owner, or the runtime itself, puts a model into memory or takes it out. */
  put(model: string, action: ManageAction): void {
    if (action === "load") this.#loaded.add(model);
    else this.#loaded.delete(model);
    this.memory.freeMb = this.memory.totalMb - this.#takenMb();
  }

  async #load({ model, signal, onProgress }: ManageRun): Promise<void> {
    this.steps.push(`load ${model}`);
    onProgress({ status: "loading" });
    const underWay = Promise.withResolvers<void>();
    this.#underWay.set(model, underWay);
    signal.addEventListener("abort", () => underWay.reject(signal.reason));
    await underWay.promise;
    const cause = this.broken.get(model);
    if (cause !== undefined) throw cause;
    this.put(model, "load");
    if (this.#takenMb() > this.reallyMb) {
      this.put(model, "unload");
      throw new Fault("upstream_error", { message: "The model needs more memory than there is." });
    }
  }

  /** A pull gets a model of 5,000 MB. */
  async #pull({ model }: ManageRun): Promise<void> {
    this.steps.push(`pull ${model}`);
    this.#sizes.set(model, 5_000);
  }

  async #unload({ model }: ManageRun): Promise<void> {
    this.steps.push(`unload ${model}`);
    this.put(model, "unload");
  }

  #takenMb(): number {
    return this.loaded.reduce((sum, id) => sum + (this.#sizes.get(id) ?? 0), 0);
  }
}
