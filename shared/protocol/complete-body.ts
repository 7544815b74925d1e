import { z } from "zod";
import { choicesMax } from "../answer/answer-event.ts";
import { chatBody } from "./chat-body.ts";

/** Bounds the answers to one request: its prompts times `n`. */
export const completionsMax = choicesMax;
/** Bounds the alternative tokens that a legacy completion reports for each token. */
export const completionLogprobsMax = 5;

const { max_tokens, temperature, top_p, frequency_penalty, presence_penalty, seed, stop, n, logit_bias } =
  chatBody.shape;

/**
 * The body of a `complete` job: prompts that are continued without a chat template. The agent asks its runtime for one
 * answer to one prompt at a time. The answers to the first prompt come first.
 */
export const completeBody = z.object({
  prompts: z.array(z.string()).min(1).max(completionsMax),
  /** The text that follows the answer. */
  suffix: z.string().min(1).optional(),
  /** True if each answer begins with its prompt. */
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
  /** Number of alternatives to report for each token. With 0 only the token's own logprob is reported. */
  logprobs: z.int().min(0).max(completionLogprobsMax).optional(),
});
export type CompleteBody = z.infer<typeof completeBody>;

/** One runtime request: one prompt that is continued once. */
export type TextToContinue = Omit<CompleteBody, "prompts" | "echo" | "n"> & { readonly prompt: string };
