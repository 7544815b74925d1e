import { z } from "zod";
import { modelId } from "#shared/protocol/model.ts";
import type { Reads } from "../../requests/read-request.ts";
import { readingOf } from "../media/media-request.ts";

/** Bounds the tokens of one text. */
export const tokensMax = 1_000_000;

const tokenizing = modelId.describe("The id of a model of vLLM or llama-server.");

/** A request for the tokens of a text, as vLLM's clients write it. */
export const tokenizeRequest = z.object({
  model: tokenizing,
  prompt: z.string().describe("The text."),
  add_special_tokens: z.boolean().nullish().describe("True for the marks that begin a prompt too, which is usual."),
  return_token_strs: z.boolean().nullish().describe("True if each token is to be told as text too."),
});

/** A request for the text of tokens. */
export const detokenizeRequest = z.object({
  model: tokenizing,
  tokens: z.array(z.int().nonnegative()).max(tokensMax).describe("The ids of the tokens."),
});

const inTokens = { why: "is not supported here; its tokens are counted at /v1/messages/count_tokens" };

export const tokenEndpoints = {
  tokenize: { path: "/tokenize", schema: tokenizeRequest, unsupported: { messages: inTokens } },
  detokenize: { path: "/detokenize", schema: detokenizeRequest, unsupported: {} },
} as const;

export const reads: Reads = {
  tokenize: readingOf(tokenEndpoints.tokenize),
  detokenize: readingOf(tokenEndpoints.detokenize),
};
