import { z } from "zod";

const bytes = z.int().nonnegative().nullable();

/** How far the work on a machine's model has come, as operators are told it. */
export const progressLine = z.object({
  status: z.string(),
  completed_bytes: bytes.describe("Of what is being moved just now; null where the runtime does not tell."),
  total_bytes: bytes,
});
export type ProgressLine = z.infer<typeof progressLine>;

/** The last line of work that went well, and of work that failed after its first line. */
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

/** What an answer of such lines is called. */
export const linesMedia = "application/x-ndjson";

/** No line of it is longer than this. */
export const manageLineBytesMax = 64 * 1024;
