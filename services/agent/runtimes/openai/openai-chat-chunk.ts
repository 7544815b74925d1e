import { z } from "zod";
import { toldUsage } from "./openai-usage.ts";

const delta = z.object({
  content: z.string().nullish(),
  reasoning: z.string().nullish(),
  reasoning_content: z.string().nullish(),
  tool_calls: z
    .array(
      z.object({
        index: z.int().nonnegative().nullish(),
        id: z.string().nullish(),
        function: z
          .object({
            name: z.string().nullish(),
            arguments: z.union([z.string(), z.record(z.string(), z.unknown())]).nullish(),
          })
          .nullish(),
      }),
    )
    .nullish(),
});

const choice = z.object({
  index: z.int().nonnegative().nullish(),
  delta: delta.nullish(),
  finish_reason: z.string().nullish(),
  logprobs: z
    .object({ content: z.array(z.unknown()).nullish() })
    .nullish()
    .catch(undefined),
});
export type ChunkChoice = z.infer<typeof choice>;

/** One event of an answer, of which every server leaves other parts out. Extras that are malformed count as left out. */
export const chatChunk = z.object({
  choices: z.array(choice).nullish(),
  usage: toldUsage.nullish().catch(undefined),
  prompt_progress: z.unknown().optional(),
});
