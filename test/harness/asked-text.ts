import { z } from "zod";

/** What of a text that is to be continued is looked at to decide whether a server refuses it. */
export const askedText = z.looseObject({
  model: z.string().optional(),
  prompt: z.string(),
  suffix: z.string().optional(),
  max_tokens: z.number().optional(),
  logprobs: z.unknown().optional(),
});
export type AskedText = z.infer<typeof askedText>;
