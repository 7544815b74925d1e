import { z } from "zod";

export const embedInputsMax = 2_048;
export const embedDimensionsMax = 65_536;

/**
 * The body of an `embed` job: the texts of an embeddings request. Whether vectors travel as numbers or as base64 is a
 * matter of the job's shape, so that every runtime can be asked for either.
 */
export const embedBody = z.strictObject({
  input: z.array(z.string().min(1)).min(1).max(embedInputsMax),
  dimensions: z.int().min(1).max(embedDimensionsMax).optional(),
});
export type EmbedBody = z.infer<typeof embedBody>;
