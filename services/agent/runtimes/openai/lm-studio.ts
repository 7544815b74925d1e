import { Fault } from "#shared/fault/fault.ts";
import { lmStudio, lmStudioSlotsDefault } from "./lm-studio-profile.ts";
import {
  lmStudioModel,
  lmStudioModelBefore,
  lmStudioModels,
  lmStudioModelsBefore,
  type LmStudioModel,
} from "./lm-studio-models.ts";
import { openAiModelList } from "./openai-model-list.ts";
import type { ServedModel } from "./openai-profile.ts";
import type { OpenAiServer } from "./openai-server.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { DescribedModel, ManageRun, Runtime } from "../runtime.ts";

/**
 * The interfaces by which versions of LM Studio list their models, newest first. Every OpenAI-shaped server has the
 * last one.
 */
const apis = ["v1", "v0", "openai"] as const;
type Api = (typeof apis)[number];

/** One LM Studio. Its native API reports facts that its OpenAI-shaped API does not. */
export class LmStudioServer implements OpenAiServer {
  readonly profile = lmStudio;
  readonly embeds = true;
  readonly slotsPerModel = true;
  readonly #connection: RuntimeConnection;
  #api: Api | undefined;
  #models: readonly LmStudioModel[] = [];

  constructor(options: { readonly connection: RuntimeConnection }) {
    this.#connection = options.connection;
  }

  get slots(): number {
    const told = this.#models.flatMap(({ instances }) => instances.flatMap(({ slots }) => slots ?? []));
    return told.length === 0 ? lmStudioSlotsDefault : Math.min(...told);
  }

  /** The actions on models. Older versions load a requested model by themselves, and have no interface for loading. */
  get manages(): NonNullable<Runtime["manages"]> {
    if (this.#api !== "v1") return {};
    return { load: (run) => this.#load(run), unload: (run) => this.#unload(run) };
  }

  modelOf(id: string): ServedModel {
    const known = this.#models.find(({ model, name }) => model.id === id || name === id);
    if (known === undefined) return { name: id };
    const { onAppleMlx = false, loaded } = known.model;
    return { name: known.name, onAppleMlx, loaded };
  }

  async catalogue(signal: AbortSignal): Promise<readonly DescribedModel[]> {
    this.#models = await this.#read(signal);
    return this.#models.map(({ model }) => model);
  }

  /**
   * Reads the models. The interface does not change while LM Studio runs. After a failed read another version may
   * answer, so the next read tries all interfaces.
   */
  async #read(signal: AbortSignal): Promise<readonly LmStudioModel[]> {
    const candidates = this.#api === undefined ? apis : [this.#api];
    this.#api = undefined;
    let failure: unknown;
    for (const api of candidates) {
      try {
        const models = await this.#list(api, signal);
        this.#api = api;
        return models;
      } catch (error) {
        signal.throwIfAborted();
        failure ??= error;
      }
    }
    throw failure;
  }

  async #list(api: Api, signal: AbortSignal): Promise<readonly LmStudioModel[]> {
    const connection = this.#connection;
    switch (api) {
      case "v1":
        return (await connection.ask(lmStudioModels, { path: "/api/v1/models", signal })).models.map(lmStudioModel);
      case "v0":
        return (await connection.ask(lmStudioModelsBefore, { path: "/api/v0/models", signal })).data.map(
          lmStudioModelBefore,
        );
      case "openai": {
        const { data } = await connection.ask(openAiModelList, { path: "/v1/models", signal });
        return data.map(({ id }) => ({
          name: id,
          instances: [],
          model: { id, ownedBy: "lm-studio", capabilities: {} },
        }));
      }
    }
  }

  async #load({ model, signal, onProgress }: ManageRun): Promise<void> {
    onProgress({ status: "loading" });
    const body = { model: this.modelOf(model).name };
    await this.#connection.text({ path: "/api/v1/models/load", body, signal });
    onProgress({ status: "loaded" });
  }

  /** Unloads every instance of the model: a model may be in memory more than once. */
  async #unload({ model, signal, onProgress }: ManageRun): Promise<void> {
    const models = await this.#read(signal);
    const known = models.find((one) => one.model.id === model || one.name === model);
    if (known === undefined) {
      throw new Fault("model_not_found", { message: "The model does not exist on this machine.", param: "model" });
    }
    for (const { id } of known.instances) {
      await this.#connection.text({ path: "/api/v1/models/unload", body: { instance_id: id }, signal });
    }
    onProgress({ status: "unloaded" });
  }
}
