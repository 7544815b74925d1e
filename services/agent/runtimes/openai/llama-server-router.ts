import { Fault } from "#shared/fault/fault.ts";
import { sleep, type Clock } from "#shared/process/clock.ts";
import { capabilitiesByProps, describedByArgs, llamaServerProps } from "./llama-server-model.ts";
import { readModelFile } from "./model-files.ts";
import { idByPlace, type ListedModel, openAiModelList, organisationIn } from "./openai-models.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { NamedModel } from "./openai-profile.ts";
import type { DescribedModel, ManageRun, Runtime } from "../runtime.ts";

/** Interval between requests for the status of a model that is being loaded or unloaded. */
const loadPollMs = 500;

/**
 * Facts that a model's own server reports. They are read once after each load, and kept while the model is unloaded.
 */
type Known = Pick<DescribedModel, "capabilities" | "contextTokens"> & {
  readonly slots: number | undefined;
  readonly modelPath: string | undefined;
};

/**
 * The models of a llama-server that was started without a model. Each model runs in a server of its own, behind the
 * router.
 */
export class LlamaServerRouter {
  readonly #connection: RuntimeConnection;
  readonly #clock: Clock;
  readonly #knownByName = new Map<string, Known>();
  #loaded: ReadonlySet<string> = new Set();

  constructor(options: { readonly connection: RuntimeConnection; readonly clock: Clock }) {
    this.#connection = options.connection;
    this.#clock = options.clock;
  }

  /** The fewest slots of a loaded model. The same number is used for all models. */
  get slots(): number | undefined {
    const slots = [...this.#loaded].flatMap((name) => this.#knownByName.get(name)?.slots ?? []);
    return slots.length === 0 ? undefined : Math.min(...slots);
  }

  get loaded(): ReadonlySet<string> {
    return this.#loaded;
  }

  async describe(signal: AbortSignal): Promise<readonly NamedModel[]> {
    const listed = (await this.#list(signal)).filter(({ status }) => status?.value !== "downloading");
    const before = this.#loaded;
    const loaded = listed.filter(isLoaded).map(({ id }) => id);
    this.#loaded = new Set(loaded);
    const fresh = loaded.filter((name) => !before.has(name) || !this.#knownByName.has(name));
    await Promise.all(fresh.map((name) => this.#learn(name, signal)));
    return Promise.all(listed.map((entry) => this.#describe(entry)));
  }

  manages(nameOf: (id: string) => string): NonNullable<Runtime["manages"]> {
    return {
      load: (run) => this.#load(run, nameOf(run.model)),
      unload: (run) => this.#unload(run, nameOf(run.model)),
    };
  }

  /** Loads the model. A router refuses to load a model that is loaded or loading, so this sends no request for it. */
  async #load({ signal, onProgress }: ManageRun, model: string): Promise<void> {
    let status = await this.#statusOf(model, signal);
    if (status === "unloaded") await this.#connection.text({ path: "/models/load", body: { model }, signal });
    let begun = status === "loading";
    for (;;) {
      status = await this.#statusOf(model, signal);
      if (isInMemory(status)) break;
      if (begun && status !== "loading") {
        throw new Fault("upstream_error", { message: "The runtime could not load the model." });
      }
      begun ||= status === "loading";
      onProgress({ status: "loading" });
      await sleep(this.#clock, loadPollMs, signal);
    }
    onProgress({ status: "loaded" });
  }

  async #unload({ signal, onProgress }: ManageRun, model: string): Promise<void> {
    if ((await this.#statusOf(model, signal)) !== "unloaded") {
      await this.#connection.text({ path: "/models/unload", body: { model }, signal });
    }
    while ((await this.#statusOf(model, signal)) !== "unloaded") {
      onProgress({ status: "unloading" });
      await sleep(this.#clock, loadPollMs, signal);
    }
    onProgress({ status: "unloaded" });
  }

  async #statusOf(model: string, signal: AbortSignal): Promise<string> {
    const status = (await this.#list(signal)).find(({ id }) => id === model)?.status?.value;
    if (status !== undefined) return status;
    throw new Fault("model_not_found", { message: "The model does not exist on this machine.", param: "model" });
  }

  async #list(signal: AbortSignal): Promise<readonly ListedModel[]> {
    return (await this.#connection.ask(openAiModelList, { path: "/models", signal })).data;
  }

  /**
   * Reads the properties of a loaded model. Without `autoload=false` the request would make the router load the model.
   */
  async #learn(name: string, signal: AbortSignal): Promise<void> {
    const path = `/props?model=${encodeURIComponent(name)}&autoload=false`;
    try {
      const props = await this.#connection.ask(llamaServerProps, { path, signal });
      this.#knownByName.set(name, {
        capabilities: capabilitiesByProps(props),
        contextTokens: props.default_generation_settings?.n_ctx ?? undefined,
        slots: props.total_slots ?? undefined,
        modelPath: props.model_path ?? undefined,
      });
    } catch {
      // The model was just unloaded, or does not report. The other models are described all the same.
      signal.throwIfAborted();
    }
  }

  async #describe(entry: ListedModel): Promise<NamedModel> {
    const { id: name, meta, status, path } = entry;
    const known = this.#knownByName.get(name);
    const byArgs = describedByArgs(status?.args ?? []);
    const place = known?.modelPath ?? path ?? byArgs.modelPath;
    const file = place === undefined ? undefined : await readModelFile(place);
    const id = idByPlace(name);
    const model = {
      id,
      createdSeconds: file?.createdSeconds,
      ownedBy: organisationIn(id) ?? "llamacpp",
      capabilities: { ...byArgs.capabilities, ...known?.capabilities },
      contextTokens: meta?.n_ctx ?? known?.contextTokens ?? byArgs.contextTokens ?? entry.context_length ?? undefined,
      sizeBytes: meta?.size ?? file?.sizeBytes,
      loaded: isLoaded(entry),
    };
    return { name, model, loading: status?.value === "loading" };
  }
}

function isInMemory(status: string | undefined): boolean {
  return status === "loaded" || status === "sleeping";
}

function isLoaded({ status }: ListedModel): boolean {
  return status?.value === "loaded";
}
