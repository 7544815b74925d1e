import { z } from "zod";
import { modelsPerMachineMax, type Capabilities } from "#shared/model/model.ts";
import type { DescribedModel } from "../runtime.ts";

const tokens = z.int().positive().nullish().catch(undefined);

/** The answer of `/api/v1/models`, since LM Studio 0.4. */
export const lmStudioModels = z.object({
  models: z
    .array(
      z.object({
        type: z.string().nullish(),
        key: z.string(),
        publisher: z.string().nullish(),
        size_bytes: z.number().positive().nullish().catch(undefined),
        max_context_length: tokens,
        format: z.string().nullish(),
        loaded_instances: z
          .array(
            z.object({
              id: z.string(),
              config: z.object({ context_length: tokens, parallel: tokens }).nullish().catch(undefined),
            }),
          )
          .nullish(),
        capabilities: z
          .object({
            vision: z.boolean().nullish(),
            trained_for_tool_use: z.boolean().nullish(),
            reasoning: z.unknown(),
          })
          .partial()
          .nullish()
          .catch(undefined),
        selected_variant: z.string().nullish().catch(undefined),
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
        max_context_length: tokens,
        loaded_context_length: tokens,
        capabilities: z.array(z.string()).nullish().catch(undefined),
      }),
    )
    .transform((models) => models.slice(0, modelsPerMachineMax)),
});
type ListedBefore = z.infer<typeof lmStudioModelsBefore>["data"][number];

/** A model of LM Studio, with the names that requests need. */
export interface LmStudioModel {
  /** The name of the model in LM Studio. */
  readonly name: string;
  readonly model: DescribedModel;
  /** The instances of the model in memory, each with an id of its own. */
  readonly instances: readonly { readonly id: string; readonly slots: number | undefined }[];
}

export function lmStudioModel(listed: Listed): LmStudioModel {
  const instances = listed.loaded_instances ?? [];
  const windows = instances.flatMap(({ config }) => config?.context_length ?? []);
  const variant = listed.selected_variant?.split("@")[1];
  return {
    name: listed.key,
    instances: instances.map(({ id, config }) => ({ id, slots: config?.parallel ?? undefined })),
    model: {
      id: variant ? `${listed.key}:${variant}` : listed.key,
      ownedBy: listed.publisher || "lm-studio",
      capabilities: {
        ...purposeOf(listed.type),
        ...(listed.type !== "embedding" && toldCapabilities(listed.capabilities)),
      },
      contextTokens: windows.length > 0 ? Math.min(...windows) : (listed.max_context_length ?? undefined),
      sizeBytes: listed.size_bytes ?? undefined,
      onAppleMlx: listed.format === "mlx",
      loaded: instances.length > 0,
    },
  };
}

export function lmStudioModelBefore(listed: ListedBefore): LmStudioModel {
  const isLoaded = listed.state === "loaded";
  const { capabilities } = listed;
  return {
    name: listed.id,
    instances: isLoaded ? [{ id: listed.id, slots: undefined }] : [],
    model: {
      id: listed.id,
      ownedBy: listed.publisher || "lm-studio",
      capabilities: {
        ...purposeOf(listed.type),
        vision: listed.type === "vlm",
        ...(capabilities && { tools: capabilities.includes("tool_use") }),
      },
      contextTokens: (isLoaded ? listed.loaded_context_length : undefined) ?? listed.max_context_length ?? undefined,
      onAppleMlx: listed.compatibility_type === "mlx",
      loaded: isLoaded,
    },
  };
}

function purposeOf(type: string | null | undefined): Partial<Capabilities> {
  const embedding = type === "embedding" || type === "embeddings";
  return embedding
    ? { completion: false, embedding: true, vision: false, tools: false, thinking: false }
    : { completion: true, embedding: false };
}

function toldCapabilities(told: Listed["capabilities"]): Partial<Capabilities> {
  if (!told) return {};
  return {
    vision: told.vision === true,
    tools: told.trained_for_tool_use === true,
    thinking: told.reasoning !== undefined && told.reasoning !== null,
  };
}
