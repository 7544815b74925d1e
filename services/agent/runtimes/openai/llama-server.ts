import { z } from "zod";
import type { Clock } from "#shared/process/clock.ts";
import { llamaServer, llamaServerSlotsDefault } from "./llama-server-profile.ts";
import { LlamaServerModel } from "./llama-server-model.ts";
import { llamaServerProps } from "./llama-server-props.ts";
import { LlamaServerRouter } from "./llama-server-router.ts";
import { ModelLoading } from "./openai-fault.ts";
import type { ServedModel } from "./openai-profile.ts";
import type { NamedModel, OpenAiServer } from "./openai-server.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { DescribedModel, Runtime } from "../runtime.ts";

const slotList = z.array(z.object({ is_processing: z.boolean() }));

/** One llama-server, with one model or as a router. Its `/props` tells which. */
export class LlamaServer implements OpenAiServer {
  readonly profile = llamaServer;
  readonly embeds = true;
  readonly #connection: RuntimeConnection;
  readonly #one: LlamaServerModel;
  readonly #router: LlamaServerRouter;
  #isRouter = false;
  #isSleeping = false;
  #totalSlots: number | undefined;
  #models: readonly NamedModel[] = [];

  constructor(options: { readonly connection: RuntimeConnection; readonly clock: Clock }) {
    this.#connection = options.connection;
    this.#one = new LlamaServerModel(options);
    this.#router = new LlamaServerRouter(options);
  }

  get slots(): number {
    return (this.#isRouter ? this.#router.slots : this.#totalSlots) ?? llamaServerSlotsDefault;
  }

  get slotsPerModel(): boolean {
    return this.#isRouter;
  }

  get manages(): NonNullable<Runtime["manages"]> {
    return this.#isRouter ? this.#router.manages((id) => this.modelOf(id).name) : {};
  }

  modelOf(id: string): ServedModel {
    const known = this.#models.find(({ model }) => model.id === id);
    return { name: known?.name ?? id, loaded: known?.model.loaded, loading: known?.loading };
  }

  /**
   * Reads the catalogue. A server that is loading its model cannot describe it. A model that it described before is
   * still offered.
   */
  async catalogue(signal: AbortSignal): Promise<readonly DescribedModel[]> {
    try {
      const props = await this.#connection.ask(llamaServerProps, { path: "/props", signal });
      this.#isRouter = props.role === "router";
      this.#isSleeping = props.is_sleeping === true;
      this.#totalSlots = props.total_slots ?? undefined;
      this.#models = this.#isRouter ? await this.#router.describe(signal) : await this.#one.describe(props, signal);
    } catch (error) {
      this.#one.forget();
      if (!(error instanceof ModelLoading)) throw error;
      this.#models = this.#models.map(({ name, model }) => ({ name, model: { ...model, loaded: false } }));
    }
    return this.#models.map(({ model }) => model);
  }

  async working(signal: AbortSignal): Promise<number> {
    if (!this.#isRouter) return this.#isSleeping ? 0 : this.#busySlots("/slots", signal);
    const paths = [...this.#router.loaded].map((name) => `/slots?model=${encodeURIComponent(name)}&autoload=false`);
    const busy = await Promise.all(paths.map((path) => this.#busySlotsIfLoaded(path, signal)));
    return busy.reduce((sum, count) => sum + count, 0);
  }

  async close(): Promise<void> {
    this.#one.close();
  }

  /** Returns the busy slots of a model, or 0 if the request fails: a model that was just unloaded works on nothing. */
  async #busySlotsIfLoaded(path: string, signal: AbortSignal): Promise<number> {
    try {
      return await this.#busySlots(path, signal);
    } catch {
      signal.throwIfAborted();
      return 0;
    }
  }

  async #busySlots(path: string, signal: AbortSignal): Promise<number> {
    const slots = await this.#connection.ask(slotList, { path, signal });
    return slots.filter((slot) => slot.is_processing).length;
  }
}
