import { z } from "zod";
import { modelsPerMachineMax } from "#shared/model/model.ts";

/** The answer of `/v1/models`, with the extra fields of some servers. An empty list may be null. */
export const openAiModelList = z.object({
  data: z
    .array(
      z.object({
        id: z.string(),
        owned_by: z.string().nullish().catch(undefined),
        // vLLM
        root: z.string().nullish().catch(undefined),
        parent: z.string().nullish().catch(undefined),
        max_model_len: z.int().positive().nullish().catch(undefined),
        // llama-server
        status: z
          .object({ value: z.string(), args: z.array(z.string()).nullish().catch(undefined) })
          .nullish()
          .catch(undefined),
        path: z.string().nullish().catch(undefined),
        context_length: z.int().positive().nullish().catch(undefined),
        meta: z.object({ n_ctx: z.int().positive(), size: z.number().positive() }).partial().nullish().catch(undefined),
      }),
    )
    .nullable()
    .transform((entries) => (entries ?? []).slice(0, modelsPerMachineMax)),
});
export type ListedModel = z.infer<typeof openAiModelList>["data"][number];

/** Returns the organisation of a name in the form of Hugging Face, `org/name`. */
export function organisationIn(name: string): string | undefined {
  return /^([\w.-]+)\/[\w.:@-]+$/.exec(name)?.[1];
}
