import { z } from "zod";
import { chatBody } from "./chat-body.ts";

/** How many answers one request may come to: its prompts, times `n`. */
export const completionsMax = 128;
/** Legacy completions give as many others for each token as this. */
export const completionLogprobsMax = 5;

const { max_tokens, temperature, top_p, frequency_penalty, presence_penalty, seed, stop, n, logit_bias } =
  chatBody.shape;

/**
 * The body of a `complete` job: texts that are to be continued as they are, without a template. The agent asks its
 * runtime for one answer to one text at a time; the answers to the first text come first.
 */
export const completeBody = z.strictObject({
  prompts: z.array(z.string()).min(1).max(completionsMax),
  /** What is to follow the answer. */
  suffix: z.string().min(1).optional(),
  /** Whether each answer begins with its prompt. */
  echo: z.boolean().optional(),
  max_tokens,
  temperature,
  top_p,
  frequency_penalty,
  presence_penalty,
  seed,
  stop,
  n,
  logit_bias,
  /** How many others are wanted beside each token; with 0 only how likely the token itself was. */
  logprobs: z.int().min(0).max(completionLogprobsMax).optional(),
});
export type CompleteBody = z.infer<typeof completeBody>;

/** One text that is to be continued once: what a runtime is asked for. */
export type TextToContinue = Omit<CompleteBody, "prompts" | "echo" | "n"> & { readonly prompt: string };
