import { z } from "zod";

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
export type ToldError = z.infer<typeof errorLine>["error"];

export const manageLine = z.union([progressLine, doneLine, errorLine]);
export type ManageLine = z.infer<typeof manageLine>;

/** Media type of an answer of such lines. */
export const linesMedia = "application/x-ndjson";

/** Bounds a line of such an answer. */
export const manageLineBytesMax = 64 * 1024;
