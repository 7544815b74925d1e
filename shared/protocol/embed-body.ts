import { z } from "zod";

export const embedInputsMax = 2_048;
export const embedDimensionsMax = 65_536;

/**
 * The body of an `embed` job: the texts of an embeddings request. The job's shape decides between numbers and base64,
 * so that every runtime can serve both.
 */
export const embedBody = z.object({
  input: z.array(z.string().min(1)).min(1).max(embedInputsMax),
  dimensions: z.int().min(1).max(embedDimensionsMax).optional(),
});
export type EmbedBody = z.infer<typeof embedBody>;
