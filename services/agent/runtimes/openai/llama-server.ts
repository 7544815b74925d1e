import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { type Capabilities, ownSampling } from "#shared/protocol/model.ts";
import { sleep, type Clock } from "#shared/process/clock.ts";
import type { ChatBody } from "#shared/protocol/job-bodies.ts";
import { honouring, honouringInTexts } from "../refuse-unsupported.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import { modelNotFound } from "../runtime-faults.ts";
import { digestOfFiles, hashed } from "../model-digest.ts";
import { parameterText, quantizationName } from "../model-details.ts";
import type { DescribedModel, ManageRun } from "../runtime.ts";
import { readModelFile, templateTakesTools, templateThinks } from "./model-files.ts";
import { probeRerank } from "./openai-rerank.ts";
import { ModelLoading } from "./openai-fault.ts";
import {
  idByPlace,
  type ListedModel,
  openAiModelList,
  optional,
  optionalCount,
  optionalText,
  organisationIn,
  PatientProbes,
  probeEmbedding,
} from "./openai-models.ts";
import {
  choiceInWords,
  plainServer,
  type Fields,
  type OpenAiProfile,
  type OpenAiServer,
  type Probed,
  type RuntimeModel,
  type OpenAiServerOptions,
} from "./openai-profile.ts";

/** llama-server of llama.cpp, with one model or as a router for many. */
export const llamaServer: OpenAiProfile = {
  ...plainServer,
  kind: "llama-server",
  // llama-server takes `n` up to its slots, and one client would then have all of them.
  honoured: honouring("logprobs", "top_logprobs", "logit_bias", "response_format", "chat_template_kwargs", "grammar"),
  sampling: {
    top_k: "top_k",
    min_p: "min_p",
    typical_p: "typical_p",
    repeat_penalty: "repeat_penalty",
    ignore_eos: "ignore_eos",
  },
  form: ({ grammar }) => ({ grammar }),
  // llama-server writes a mark for each image into the text of the message, before the template sees it.
  takesResultImages: true,
  prefill: "continues",
  always: { return_progress: true },
  // llama-server reads a named function in `tool_choice` as any offered function.
  tools: choiceInWords,
  thinking: (effort) => ({
    reasoning_effort: effort,
    ...(effort === "none" && { chat_template_kwargs: { enable_thinking: false } }),
  }),
  refuse: refuseBesideTools,
  texts: {
    // llama-server ignores `suffix` here. Its own interface for a suffix cuts a text that is too long.
    honoured: honouringInTexts("logprobs", "logit_bias"),
    takesEmpty: true,
    logprobsMin: 1,
  },
};

function refuseBesideTools({ logprobs, grammar, tools }: ChatBody): void {
  const param = logprobs === true ? "logprobs" : grammar === undefined ? undefined : "grammar";
  if (param === undefined || tools === undefined) return;
  const message = `The runtime of this model does not support '${param}' together with 'tools'.`;
  throw new Fault("unsupported_parameter", { message, param });
}

/** The slots of a llama-server that does not report them: its default of `--parallel`. */
const llamaServerSlotsDefault = 4;

/** Interval between requests for the status of a model that is being loaded or unloaded. */
const loadPollMs = 500;

/** The fields of llama-server's `/props` that matter here. A router has a `role`, and no properties of a model. */
export const llamaServerProps = z.object({
  role: optionalText,
  default_generation_settings: optional(
    z.object({ n_ctx: optionalCount, params: ownSampling.optional().catch(undefined) }),
  ),
  total_slots: optionalCount,
  modalities: optional(z.object({ vision: z.boolean() }).partial()),
  chat_template: optionalText,
  chat_template_caps: optional(
    z
      .object({ supports_tools: z.boolean(), supports_tool_calls: z.boolean(), supports_reasoning_effort: z.boolean() })
      .partial(),
  ),
  model_path: optionalText,
  model_ftype: optionalText,
  build_info: optionalText,
  is_sleeping: optional(z.boolean()),
});
type LlamaServerProps = z.infer<typeof llamaServerProps>;

/** Returns the capabilities that the server's properties report. `embedding` is not among them. */
export function capabilitiesByProps(props: LlamaServerProps): Partial<Capabilities> {
  const { chat_template: template, chat_template_caps: caps, modalities } = props;
  const tools =
    caps?.supports_tool_calls ?? caps?.supports_tools ?? (template ? templateTakesTools(template) : undefined);
  const thinking = caps?.supports_reasoning_effort || (template ? templateThinks(template) : undefined);
  return {
    ...(modalities?.vision !== undefined && { vision: modalities.vision }),
    ...(tools !== undefined && { tools }),
    ...(thinking !== undefined && { thinking }),
  };
}

/** Reads facts of a model from the arguments with which a router would start it. */
export function describedByArgs(args: readonly string[]) {
  const placeOf = (names: string[]): number => args.findIndex((arg) => names.includes(arg));
  const has = (...names: string[]): boolean => placeOf(names) >= 0;
  const textOf = (...names: string[]): string | undefined => (has(...names) ? args[placeOf(names) + 1] : undefined);
  const window = Number(textOf("-c", "--ctx-size") ?? 0);
  const shared = has("-kvu", "--kv-unified") ? 1 : Number(textOf("-np", "--parallel") ?? 1);
  const modelPath = textOf("-m", "--model");
  return {
    ...(window > 0 && { contextTokens: Math.floor(window / Math.max(shared, 1)) }),
    ...(modelPath !== undefined && { modelPath }),
    ...(has("--rerank", "--reranking") && { furtherAbilities: ["rerank" as const] }),
    capabilities: {
      ...(has("--rerank", "--reranking") && { completion: false }),
      ...(has("--embedding", "--embeddings") && { embedding: true, completion: false }),
      ...(has("--mmproj", "-mm", "--mmproj-url") && { vision: true }),
    },
  };
}

const applied = z.object({ prompt: z.string() });
const tokenized = z.object({ tokens: z.array(z.unknown()) });

const slotList = z.array(z.object({ is_processing: z.boolean() }));

type LlamaModel = DescribedModel & RuntimeModel;

/**
 * One llama-server. Started with a model, it describes that model in `/props`. Started without one, it is a router: each
 * model runs in a server of its own behind it.
 */
export class LlamaServer implements OpenAiServer {
  readonly profile = llamaServer;
  readonly embeds = true;
  readonly reranks = true;
  readonly tokenizes = true;
  readonly #connection: RuntimeConnection;
  readonly #clock: Clock;
  readonly #probes: PatientProbes<Probed>;
  /** The properties of the one model, or those of the router. */
  #props: LlamaServerProps = llamaServerProps.parse({});
  /** Properties of a router's models. They are read once after each load, and kept while the model is unloaded. */
  readonly #propsByName = new Map<string, LlamaServerProps>();
  #loaded: ReadonlySet<string> = new Set();
  #models: readonly LlamaModel[] = [];

  constructor(options: OpenAiServerOptions) {
    this.#connection = options.connection;
    this.#clock = options.clock;
    this.#probes = new PatientProbes(options);
  }

  get #isRouter(): boolean {
    return this.#props.role === "router";
  }

  /** For a router the fewest slots of a loaded model: the same number is used for all models. */
  get slots(): number {
    const loaded = [...this.#loaded].map((name) => this.#propsByName.get(name));
    const slots = (this.#isRouter ? loaded : [this.#props]).flatMap((props) => props?.total_slots ?? []);
    return slots.length === 0 ? llamaServerSlotsDefault : Math.min(...slots);
  }

  get version(): string | undefined {
    return this.#props.build_info ?? undefined;
  }

  get slotsPerModel(): boolean {
    return this.#isRouter;
  }

  get manages(): NonNullable<OpenAiServer["manages"]> {
    return this.#isRouter ? { load: (run) => this.#load(run), unload: (run) => this.#unload(run) } : {};
  }

  /**
   * Reads the catalogue. A server that is loading its model cannot describe it. A model that it described before is
   * still offered.
   */
  async catalogue(signal: AbortSignal): Promise<readonly LlamaModel[]> {
    try {
      this.#props = await this.#connection.ask(llamaServerProps, { path: "/props", signal });
      this.#models = await (this.#isRouter ? this.#describeAll(signal) : this.#describeOne(signal));
    } catch (error) {
      this.#probes.forget();
      if (!(error instanceof ModelLoading)) throw error;
      this.#models = this.#models.map((model) => ({ ...model, loaded: false, loading: undefined }));
    }
    return this.#models;
  }

  async working(signal: AbortSignal): Promise<number> {
    if (!this.#isRouter) return this.#props.is_sleeping === true ? 0 : this.#busySlots("/slots", signal);
    const paths = [...this.#loaded].map((name) => `/slots${ofModel(name)}`);
    // A model that was just unloaded works on nothing.
    const busy = await Promise.all(paths.map((path) => this.#busySlots(path, signal).catch(() => 0)));
    signal.throwIfAborted();
    return busy.reduce((sum, count) => sum + count, 0);
  }

  async close(): Promise<void> {
    this.#probes.close();
  }

  /** Has the template applied as for an answer, and counts its tokens as llama-server does for an answer. */
  async count(request: Fields, signal: AbortSignal): Promise<number> {
    const { prompt } = await this.#connection.ask(applied, { path: "/apply-template", body: request, signal });
    const body = { model: request["model"], content: prompt, add_special: true, parse_special: true };
    const { tokens: counted } = await this.#connection.ask(tokenized, { path: "/tokenize", body, signal });
    return counted.length;
  }

  async #busySlots(path: string, signal: AbortSignal): Promise<number> {
    const slots = await this.#connection.ask(slotList, { path, signal });
    return slots.filter((slot) => slot.is_processing).length;
  }

  async #list(path: "/models" | "/v1/models", signal: AbortSignal): Promise<readonly ListedModel[]> {
    return (await this.#connection.ask(openAiModelList, { path, signal })).data;
  }

  async #describeOne(signal: AbortSignal): Promise<readonly LlamaModel[]> {
    const props = this.#props;
    const [listed] = await this.#list("/v1/models", signal);
    if (listed === undefined) return [];
    const model = await describe(listed, props);
    if (props.is_sleeping === true) return [{ ...model, loaded: false }];
    // A probe finds out if the server was started for embeddings or to rerank. A sleeping model is not woken up for this.
    const start = JSON.stringify([listed.id, props.model_path, props.build_info, props.default_generation_settings]);
    const found = await this.#probes.find(start, (until) => this.#probe(listed.id, until), signal);
    return [
      {
        ...model,
        capabilities: { ...model.capabilities, ...found.capabilities },
        furtherAbilities: found.furtherAbilities,
        loaded: true,
      },
    ];
  }

  async #probe(model: string, signal: AbortSignal): Promise<Probed> {
    try {
      await probeEmbedding(this.#connection, model, signal);
      // With `--reranking` the server answers this request too, with a score in place of a vector.
      const reranks = await probeRerank(this.#connection, model, signal);
      return { capabilities: { completion: false, embedding: !reranks }, furtherAbilities: reranks ? ["rerank"] : [] };
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== "unsupported_value") throw error;
      return { capabilities: { completion: true, embedding: false } };
    }
  }

  async #describeAll(signal: AbortSignal): Promise<readonly LlamaModel[]> {
    const listed = (await this.#list("/models", signal)).filter(({ status }) => status?.value !== "downloading");
    const before = this.#loaded;
    this.#loaded = new Set(listed.filter(({ status }) => status?.value === "loaded").map(({ id }) => id));
    const fresh = [...this.#loaded].filter((name) => !before.has(name) || !this.#propsByName.has(name));
    await Promise.all(fresh.map((name) => this.#learn(name, signal)));
    return Promise.all(
      listed.map(async (entry) => {
        const status = entry.status?.value;
        const model = await describe(entry, this.#propsByName.get(entry.id));
        return { ...model, loaded: status === "loaded", loading: status === "loading" };
      }),
    );
  }

  async #learn(name: string, signal: AbortSignal): Promise<void> {
    try {
      const path = `/props${ofModel(name)}`;
      this.#propsByName.set(name, await this.#connection.ask(llamaServerProps, { path, signal }));
    } catch {
      // The model was just unloaded, or does not report. The other models are described all the same.
      signal.throwIfAborted();
    }
  }

  /** Loads the model. A router refuses to load a model that is loaded or loading, so this sends no request for it. */
  async #load({ model, signal, onProgress }: ManageRun): Promise<void> {
    let status = await this.#statusOf(model, signal);
    if (status === "unloaded") await this.#connection.text({ path: "/models/load", body: { model }, signal });
    let begun = status === "loading";
    for (;;) {
      status = await this.#statusOf(model, signal);
      if (status === "loaded" || status === "sleeping") break;
      if (begun && status !== "loading") {
        throw new Fault("upstream_error", { message: "The runtime could not load the model." });
      }
      begun ||= status === "loading";
      onProgress({ status: "loading" });
      await sleep(this.#clock, loadPollMs, signal);
    }
    onProgress({ status: "loaded" });
  }

  async #unload({ model, signal, onProgress }: ManageRun): Promise<void> {
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
    const status = (await this.#list("/models", signal)).find(({ id }) => id === model)?.status?.value;
    if (status === undefined) throw modelNotFound();
    return status;
  }
}

/** The query for one of a router's models. Without `autoload=false` the request would make the router load the model. */
function ofModel(name: string): string {
  return `?model=${encodeURIComponent(name)}&autoload=false`;
}

/** Describes a model by the list, by its properties once it was loaded, and by the arguments that start it. */
async function describe(entry: ListedModel, props: LlamaServerProps | undefined): Promise<LlamaModel> {
  const { id: name, meta, status, path } = entry;
  const byArgs = describedByArgs(status?.args ?? []);
  const place = props?.model_path || path || byArgs.modelPath;
  const file = place ? await readModelFile(place) : undefined;
  // A server may be started with a template of its own, so a model is known only with its template.
  const weights = props?.model_path ? await digestOfFiles(props.model_path) : undefined;
  const digest = weights && `llama-server:${hashed(weights, props?.chat_template ?? "")}`;
  const id = idByPlace(name);
  const known = props?.default_generation_settings?.n_ctx;
  return {
    id,
    name,
    createdSeconds: file?.createdSeconds,
    ownedBy: organisationIn(id) ?? "llamacpp",
    furtherAbilities: byArgs.furtherAbilities,
    capabilities: { ...byArgs.capabilities, ...(props && capabilitiesByProps(props)) },
    contextTokens: meta?.n_ctx ?? known ?? byArgs.contextTokens ?? entry.context_length ?? undefined,
    sizeBytes: meta?.size ?? file?.sizeBytes,
    digest,
    sampling: props?.default_generation_settings?.params,
    details: {
      parameter_size: parameterText(meta?.n_params),
      quantization_level: quantizationName(meta?.ftype ?? props?.model_ftype),
    },
  };
}
