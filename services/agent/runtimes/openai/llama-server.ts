import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { ChatBody } from "#shared/protocol/job-bodies.ts";
import { honouring, honouringInTexts } from "../refuse-unsupported.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { DescribedModel, Runtime } from "../runtime.ts";
import { LlamaServerModel, llamaServerProps } from "./llama-server-model.ts";
import { LlamaServerRouter } from "./llama-server-router.ts";
import { ModelLoading } from "./openai-fault.ts";
import {
  choiceInWords,
  type NamedModel,
  type OpenAiProfile,
  type OpenAiServer,
  type ServedModel,
} from "./openai-profile.ts";

/** llama-server of llama.cpp, with one model or as a router for many. */
export const llamaServer: OpenAiProfile = {
  kind: "llama-server",
  name: "llama-server",
  honoured: honouring("logprobs", "top_logprobs", "logit_bias", "response_format"),
  // llama-server takes `n` up to its slots, and one client would then have all of them.
  answersSeveral: false,
  takesImages: true,
  prefill: "continues",
  always: { return_progress: true },
  // llama-server reads a named function in `tool_choice` as any offered function.
  tools: choiceInWords,
  takesParallelToolCalls: true,
  responseFormat: (format) => format,
  thinking: (effort) => ({
    reasoning_effort: effort,
    ...(effort === "none" && { chat_template_kwargs: { enable_thinking: false } }),
  }),
  reasoningFields: ["reasoning_content"],
  contentBesideCalls: null,
  refuse: refuseLogprobsWithTools,
  endsAtStops: true,
  dropsUnreadableCalls: false,
  mayIgnoreLogprobs: false,
  texts: {
    // llama-server ignores `suffix` here. Its own interface for a suffix cuts a text that is too long.
    honoured: honouringInTexts("logprobs", "logit_bias"),
    takesEmpty: true,
    logprobsMin: 1,
  },
};

/** The slots of a llama-server that does not report them: its default of `--parallel`. */
const llamaServerSlotsDefault = 4;

function refuseLogprobsWithTools(body: ChatBody): void {
  if (body.logprobs !== true || body.tools === undefined) return;
  throw new Fault("unsupported_parameter", {
    message: "The runtime of this model does not support 'logprobs' together with 'tools'.",
    param: "logprobs",
  });
}

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
