import { z } from "zod";
import type { LoadNews } from "./frame-payload.ts";
import { machineName } from "./identifiers.ts";

/** A model id in the client's form: `name` or `name:variant`, with namespaces such as `hf.co/org/name:tag`. */
export const modelIdCharactersMax = 256;
export const modelId = z
  .string()
  .min(1)
  .max(modelIdCharactersMax)
  .refine((id) => id.isWellFormed(), "must be well-formed Unicode");

export const capabilities = z.object({
  completion: z.boolean(),
  vision: z.boolean(),
  embedding: z.boolean(),
  tools: z.boolean().describe("It calls the tools of a request."),
  thinking: z.boolean(),
});
export type Capabilities = z.infer<typeof capabilities>;

/**
 * The abilities beside those of the contract, by name. A reader ignores names that it does not know. Absent where there
 * are none, so the models of the contract stay as they are.
 */
const furtherCapabilities = z.array(z.string().max(50)).max(20).optional();

/** The end of the year 9999, in seconds since 1970: outer APIs write dates with years of four digits. */
export const createdSecondsMax = 253_402_300_799;

/** The Model object of the contract: the format for clients, and of a machine's catalogue. */
export const model = z.object({
  id: modelId.describe("The name for requests: `name` or `name:variant`, perhaps with a namespace before it."),
  object: z.literal("model"),
  created: z.int().nonnegative().max(createdSecondsMax),
  owned_by: z.string().max(100),
  capabilities,
  x_capabilities: furtherCapabilities,
  context_window: z.int().positive(),
  size_mb: z.int().nonnegative(),
  runtime_profile: z.enum(["auto", "apple-mlx"]),
  apple_mlx: z.literal(true).optional(),
});
export type Model = z.infer<typeof model>;

/** The abilities beside those of the contract that this version knows. */
export const furtherAbilities = ["rerank", "transcription", "speech", "image", "moderation", "tokenize"] as const;
export type FurtherAbility = (typeof furtherAbilities)[number];
const further: ReadonlySet<string> = new Set(furtherAbilities);

/** The abilities that a request may need of its model. */
export type Ability = keyof Capabilities | FurtherAbility;

export function isAble(one: Pick<Model, "capabilities" | "x_capabilities">, ability: Ability): boolean {
  if (further.has(ability)) return one.x_capabilities?.includes(ability) ?? false;
  return one.capabilities[ability as keyof Capabilities];
}

/**
 * The kinds of answers that a model may go on with after another machine began them: with or without tools in the request,
 * with or without a thought before the text. A machine proves each kind for itself.
 */
export const seams = ["plain", "thought", "tools", "tools and thought"] as const;
export type Seam = (typeof seams)[number];

export function seamWith({ tools, thought }: { readonly tools: boolean; readonly thought: boolean }): Seam {
  if (tools) return thought ? "tools and thought" : "tools";
  return thought ? "thought" : "plain";
}

const detailCharactersMax = 60;
const detail = z
  .string()
  .transform((text) => text.slice(0, detailCharactersMax))
  .optional()
  .catch(undefined);

/** The weights of a model in the words of its runtime: `llama`, `3.2B`, `Q4_K_M`. A machine's longer texts are cut. */
export const modelDetails = z.object({ family: detail, parameter_size: detail, quantization_level: detail });
export type ModelDetails = z.infer<typeof modelDetails>;

/** A number as it was configured: llama.cpp reports 0.8 as 0.800000011920929. */
const setting = z
  .number()
  .transform((value) => Number(value.toPrecision(6)))
  .optional();
/** The sampling of a request that says none, as the model's runtime reports it. */
export const ownSampling = z.object({ temperature: setting, top_p: setting });
export type OwnSampling = z.infer<typeof ownSampling>;

/** A model in a machine's offer, with fields for operators that clients do not receive. */
export const offeredModel = model.extend({
  /** The name of the runtime that runs it. */
  runtime: z.string().max(100).optional(),
  /** True if the model is loaded in memory now; undefined where the runtime does not report it. */
  loaded: z.boolean().optional(),
  /** The memory that it takes, and the time that its load takes, as measured there; absent until they were. */
  memory_mb: z.int().nonnegative().optional(),
  load_ms: z.int().nonnegative().optional(),
  /** True if its machine takes `count` jobs for it. Agents before this field do not know the kind. */
  counts: z.literal(true).optional(),
  /** Equal on two machines only if the weights, quantisation, template and tokenizer are. Absent where that is unknown. */
  digest: z.string().min(1).max(128).optional(),
  /** The answers that it goes on with, as its machine has proved. */
  continues: z.array(z.enum(seams)).max(seams.length).optional(),
  /** Ollama's clients receive it; absent where the runtime reports none. */
  details: modelDetails.optional().catch(undefined),
  sampling: ownSampling.optional().catch(undefined),
});
export type OfferedModel = z.infer<typeof offeredModel>;
/** A model for clients, and the details that only some outer APIs show. */
export type DetailedModel = Model & Pick<OfferedModel, "details">;

export const modelsPerMachineMax = 2_000;

/** The models that one machine offers. */
export const catalogue = z.array(offeredModel).max(modelsPerMachineMax);
export type Catalogue = z.infer<typeof catalogue>;

const bytes = z.int().nonnegative().nullable();

/** Progress of an action on a machine's model, in the format for operators. */
export const progressLine = z.object({
  status: z.string(),
  completed_bytes: bytes.describe("Of what is being moved just now; null where the runtime does not tell."),
  total_bytes: bytes,
});
export type ProgressLine = z.infer<typeof progressLine>;

/** The last line of a successful action, and of an action that failed after its first line. */
export const doneLine = z.object({ done: z.literal(true) });
export const errorLine = z.object({
  error: z.object({
    message: z.string(),
    type: z.string(),
    param: z.string().nullable(),
    code: z.string().nullable(),
  }),
});
export type ErrorBody = z.infer<typeof errorLine>["error"];

export const manageLine = z.union([progressLine, doneLine, errorLine]);
export type ManageLine = z.infer<typeof manageLine>;

/** Media type of an answer of such lines. */
export const linesMedia = "application/x-ndjson";

/** Bounds a line of such an answer. */
export const manageLineBytesMax = 64 * 1024;

/** The tag that users of Ollama may write behind a model's name. */
export const latestTag = ":latest";

/** Returns the id that `id` may stand for. Users of Ollama may write `name:latest` for a model listed as `name`. */
export function aliasedId(id: string): string {
  return id.endsWith(latestTag) ? id.slice(0, -latestTag.length) : id;
}

/** Returns a model's name as Ollama writes it, always with a tag. Open WebUI finds no model whose name lacks one. */
export function taggedName(id: string): string {
  return id.includes(":", id.lastIndexOf("/") + 1) ? id : id + latestTag;
}

/** A model on one machine, in the format for operators: in the admin API and on the command line. */
export const shownModel = z.object({
  id: model.shape.id,
  machine: machineName,
  runtime: z.string().nullable().describe("The runtime that serves it; null where the machine does not say."),
  capabilities,
  x_capabilities: furtherCapabilities,
  context_window: model.shape.context_window,
  size_mb: model.shape.size_mb,
  created: model.shape.created,
  runtime_profile: model.shape.runtime_profile,
  apple_mlx: z.boolean(),
  loaded: z.boolean().nullable().describe("True if it lies in memory now; null where the runtime does not tell."),
  loading: z
    .object({ percent: z.int(), seconds_left: z.int() })
    .nullish()
    .describe("How far its load is, if it is being loaded now; null otherwise."),
  kept: z.boolean().optional().describe("True if the machine keeps it in memory."),
  memory_mb: z.int().nullish().describe("The memory that it takes; null until that was measured there."),
  load_seconds: z.number().nullish().describe("The time that its load takes; null until that was measured there."),
  digest: z.string().nullish().describe("Equal for the same model on several machines; null where that is unknown."),
  continues: z
    .array(z.enum(seams))
    .nullish()
    .describe("The kinds of answers with which it goes on after another machine began them; null until it was tried."),
});
export type ShownModel = z.infer<typeof shownModel>;

export function showModel(
  offered: OfferedModel,
  machine: string,
  {
    loading: load,
    keeps,
  }: { readonly loading?: LoadNews | undefined; readonly keeps?: readonly { model: string }[] | undefined } = {},
): ShownModel {
  const isLoading = load !== undefined && load.model === offered.id;
  return {
    id: offered.id,
    machine,
    runtime: offered.runtime ?? null,
    capabilities: offered.capabilities,
    x_capabilities: offered.x_capabilities,
    context_window: offered.context_window,
    size_mb: offered.size_mb,
    created: offered.created,
    runtime_profile: offered.runtime_profile,
    apple_mlx: offered.apple_mlx === true,
    loaded: offered.loaded ?? null,
    loading: isLoading ? { percent: load.percent, seconds_left: Math.ceil(load.leftMs / 1_000) } : null,
    kept: keeps?.some(({ model: kept }) => kept === offered.id) ?? false,
    memory_mb: offered.memory_mb ?? null,
    load_seconds: offered.load_ms === undefined ? null : Math.round(offered.load_ms / 100) / 10,
    digest: offered.digest ?? null,
    continues: offered.continues ?? null,
  };
}

/** The result of a machine in a listing. The listing holds only the models of `listed` machines. */
export const machineStates = ["listed", "no_runtime", "no_answer", "stopping", "offline"] as const;
export type MachineState = (typeof machineStates)[number];

export const shownMachine = z.object({
  machine: machineName,
  state: z
    .enum(machineStates)
    .describe("`listed` for a machine whose models are listed. Each other state is the reason for which they are not."),
});
export type ShownMachine = z.infer<typeof shownMachine>;

export const modelListing = z.object({
  object: z.literal("list"),
  data: z.array(shownModel).describe("By id, and by machine where several have it."),
  machines: z.array(shownMachine).describe("Every machine that was asked or is known to be away."),
});
export type ModelListing = z.infer<typeof modelListing>;
