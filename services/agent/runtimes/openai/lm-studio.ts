import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { type Capabilities, modelsPerMachineMax } from "#shared/protocol/model.ts";
import type { ChatBody } from "#shared/protocol/job-bodies.ts";
import { honouring, honouringInTexts } from "../refuse-unsupported.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import { modelNotFound } from "../runtime-faults.ts";
import type { DescribedModel, ManageRun } from "../runtime.ts";
import { openAiModelList, optional, optionalCount, optionalText } from "./openai-models.ts";
import {
  choiceInWords,
  plainServer,
  type Effort,
  type OpenAiProfile,
  type OpenAiServer,
  type RuntimeModel,
  type OpenAiServerOptions,
  type Tools,
} from "./openai-profile.ts";

/** LM Studio. Fields that its documentation does not list count as unsupported. */
export const lmStudio: OpenAiProfile = {
  ...plainServer,
  kind: "lm-studio",
  honoured: honouring("logit_bias", "response_format"),
  sampling: { top_k: "top_k", repeat_penalty: "repeat_penalty" },
  prefill: "as-the-template",
  tools: chosenTools,
  takesParallelToolCalls: false,
  responseFormat,
  thinking,
  reasoningFields: [],
  contentBesideCalls: undefined,
  texts: { honoured: honouringInTexts("logit_bias"), takesEmpty: false },
};

/** The number of predictions that LM Studio runs at once for one model by default. */
const lmStudioSlotsDefault = 4;

/**
 * Returns the tools and their choice. LM Studio's MLX engine leaves the choice to the model, whatever value is sent.
 */
function chosenTools(wanted: Tools, model: RuntimeModel): Tools {
  const choice = wanted.tool_choice ?? "auto";
  if (model.onAppleMlx !== true || choice === "auto" || choice === "none") return choiceInWords(wanted);
  const message =
    "LM Studio's MLX engine leaves it to the model whether to call a tool: 'tool_choice' can be auto or none.";
  throw new Fault("unsupported_value", { message, param: "tool_choice" });
}

/** LM Studio supports only JSON schemas. `json_object` becomes the schema of any object. */
function responseFormat(format: NonNullable<ChatBody["response_format"]>): unknown {
  if (format.type !== "json_object") return format;
  return { type: "json_schema", json_schema: { name: "json_object", schema: { type: "object" } } };
}

/** LM Studio's `/v1` takes only the levels of gpt-oss, and cannot disable the thinking of a model. */
function thinking(effort: Effort, thinks: boolean): Readonly<Record<string, unknown>> {
  if (effort === "none" && !thinks) return {};
  if (effort === "low" || effort === "medium" || effort === "high") return { reasoning_effort: effort };
  const message = "The runtime of this model takes 'reasoning_effort' as low, medium or high.";
  throw new Fault("unsupported_value", { message, param: "reasoning_effort" });
}

/**
 * The interfaces by which versions of LM Studio list their models, newest first. Every OpenAI-shaped server has the
 * last one.
 */
const apis = ["v1", "v0", "openai"] as const;
type LmStudioApi = (typeof apis)[number];

/** One LM Studio. Its native API reports facts that its OpenAI-shaped API does not. */
export class LmStudioServer implements OpenAiServer {
  readonly profile = lmStudio;
  readonly embeds = true;
  readonly slotsPerModel = true;
  readonly #connection: RuntimeConnection;
  #api: LmStudioApi | undefined;
  #models: readonly LmStudioModel[] = [];

  constructor({ connection }: OpenAiServerOptions) {
    this.#connection = connection;
  }

  get slots(): number {
    const slots = this.#models.flatMap(({ instances }) => instances.flatMap((instance) => instance.slots ?? []));
    return slots.length === 0 ? lmStudioSlotsDefault : Math.min(...slots);
  }

  /** The actions on models. Older versions load a requested model by themselves, and have no interface for loading. */
  get manages(): NonNullable<OpenAiServer["manages"]> {
    if (this.#api !== "v1") return {};
    return { load: (run) => this.#load(run), unload: (run) => this.#unload(run) };
  }

  /**
   * Reads the models. The interface does not change while LM Studio runs. After a failed read another version may
   * answer, so the next read tries all interfaces.
   */
  async catalogue(signal: AbortSignal): Promise<readonly LmStudioModel[]> {
    const candidates = this.#api === undefined ? apis : [this.#api];
    this.#api = undefined;
    let failure: unknown;
    for (const api of candidates) {
      try {
        this.#models = await this.#list(api, signal);
        this.#api = api;
        return this.#models;
      } catch (error) {
        signal.throwIfAborted();
        failure ??= error;
      }
    }
    throw failure;
  }

  async #list(api: LmStudioApi, signal: AbortSignal): Promise<readonly LmStudioModel[]> {
    const connection = this.#connection;
    if (api === "v1") {
      return (await connection.ask(lmStudioModels, { path: "/api/v1/models", signal })).models.map(lmStudioModel);
    }
    if (api === "v0") {
      const { data } = await connection.ask(lmStudioModelsBefore, { path: "/api/v0/models", signal });
      return data.map(lmStudioModelBefore);
    }
    const { data } = await connection.ask(openAiModelList, { path: "/v1/models", signal });
    return data.map(({ id }) => ({ id, name: id, instances: [], ownedBy: "lm-studio", capabilities: {} }));
  }

  async #load({ model, signal, onProgress }: ManageRun): Promise<void> {
    onProgress({ status: "loading" });
    await this.#connection.text({ path: "/api/v1/models/load", body: { model }, signal });
    onProgress({ status: "loaded" });
  }

  /** Unloads every instance of the model: a model may be in memory more than once. */
  async #unload({ model, signal, onProgress }: ManageRun): Promise<void> {
    const known = (await this.catalogue(signal)).find(({ name }) => name === model);
    if (known === undefined) throw modelNotFound();
    for (const { id } of known.instances) {
      await this.#connection.text({ path: "/api/v1/models/unload", body: { instance_id: id }, signal });
    }
    onProgress({ status: "unloaded" });
  }
}

const flag = z.boolean().nullish();

/** The answer of `/api/v1/models`, since LM Studio 0.4. */
export const lmStudioModels = z.object({
  models: z
    .array(
      z.object({
        type: z.string().nullish(),
        key: z.string(),
        publisher: z.string().nullish(),
        size_bytes: optional(z.number().positive()),
        max_context_length: optionalCount,
        format: z.string().nullish(),
        loaded_instances: z
          .array(
            z.object({
              id: z.string(),
              config: optional(z.object({ context_length: optionalCount, parallel: optionalCount })),
            }),
          )
          .nullish(),
        capabilities: optional(
          z.object({ vision: flag, trained_for_tool_use: flag, reasoning: z.unknown() }).partial(),
        ),
        selected_variant: optionalText,
        architecture: optionalText,
        params_string: optionalText,
        quantization: optional(z.object({ name: optionalText })),
      }),
    )
    .transform((models) => models.slice(0, modelsPerMachineMax)),
});
type Listed = z.infer<typeof lmStudioModels>["models"][number];

/** The answer of `/api/v0/models`, before LM Studio 0.4. */
export const lmStudioModelsBefore = z.object({
  data: z
    .array(
      z.object({
        id: z.string(),
        type: z.string().nullish(),
        publisher: z.string().nullish(),
        compatibility_type: z.string().nullish(),
        state: z.string().nullish(),
        max_context_length: optionalCount,
        loaded_context_length: optionalCount,
        arch: optionalText,
        quantization: optionalText,
        capabilities: optional(z.array(z.string())),
      }),
    )
    .transform((models) => models.slice(0, modelsPerMachineMax)),
});
type ListedBefore = z.infer<typeof lmStudioModelsBefore>["data"][number];

/** A model of LM Studio, and its instances in memory, each with an id of its own. */
interface LmStudioModel extends DescribedModel, RuntimeModel {
  readonly instances: readonly { readonly id: string; readonly slots: number | undefined }[];
}

export function lmStudioModel(listed: Listed): LmStudioModel {
  const instances = listed.loaded_instances ?? [];
  const windows = instances.flatMap(({ config }) => config?.context_length ?? []);
  const variant = listed.selected_variant?.split("@")[1];
  return {
    id: variant ? `${listed.key}:${variant}` : listed.key,
    name: listed.key,
    instances: instances.map(({ id, config }) => ({ id, slots: config?.parallel ?? undefined })),
    ownedBy: listed.publisher || "lm-studio",
    capabilities: {
      ...purposeOf(listed.type),
      ...(listed.type !== "embedding" && reportedCapabilities(listed.capabilities)),
    },
    contextTokens: windows.length > 0 ? Math.min(...windows) : (listed.max_context_length ?? undefined),
    sizeBytes: listed.size_bytes ?? undefined,
    details: {
      family: listed.architecture ?? undefined,
      parameter_size: listed.params_string ?? undefined,
      quantization_level: listed.quantization?.name ?? undefined,
    },
    onAppleMlx: listed.format === "mlx",
    loaded: instances.length > 0,
  };
}

export function lmStudioModelBefore(listed: ListedBefore): LmStudioModel {
  const { id, capabilities } = listed;
  const isLoaded = listed.state === "loaded";
  return {
    id,
    name: id,
    instances: isLoaded ? [{ id, slots: undefined }] : [],
    ownedBy: listed.publisher || "lm-studio",
    capabilities: {
      ...purposeOf(listed.type),
      vision: listed.type === "vlm",
      ...(capabilities && { tools: capabilities.includes("tool_use") }),
    },
    contextTokens: (isLoaded ? listed.loaded_context_length : undefined) ?? listed.max_context_length ?? undefined,
    details: { family: listed.arch ?? undefined, quantization_level: listed.quantization ?? undefined },
    onAppleMlx: listed.compatibility_type === "mlx",
    loaded: isLoaded,
  };
}

function purposeOf(type: string | null | undefined): Partial<Capabilities> {
  const embedding = type === "embedding" || type === "embeddings";
  return embedding
    ? { completion: false, embedding: true, vision: false, tools: false, thinking: false }
    : { completion: true, embedding: false };
}

function reportedCapabilities(reported: Listed["capabilities"]): Partial<Capabilities> {
  if (!reported) return {};
  return {
    vision: reported.vision === true,
    tools: reported.trained_for_tool_use === true,
    thinking: reported.reasoning !== undefined && reported.reasoning !== null,
  };
}
