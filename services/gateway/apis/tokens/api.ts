import { z } from "zod";
import type { Api } from "../api.ts";
import { ofMedia } from "../media/render-media.ts";
import { count, text } from "../answer-parts.ts";
import { type ApiDescription, post } from "../description.ts";
import { example, sample } from "../example-requests.ts";
import { tokenEndpoints } from "./token-request.ts";

const tokens = { tokens: z.array(count), token_strs: z.array(text).nullable() };
const tokenList = z.object({ count, max_model_len: count, ...tokens });
const detokenizedText = z.object({ prompt: text });
const { tokenize, detokenize } = tokenEndpoints;
const model = "llama3.2";

const describeTokens: ApiDescription = {
  tag: "Tokens",
  schemas: [{ tokenizeRequest: tokenize.schema, detokenizeRequest: detokenize.schema, tokenList, detokenizedText }],
  operations: [
    post("tokenize", "tokenize", [tokenize.schema, tokenList], {
      refuses: tokenize.unsupported,
      examples: { text: example("One text", { model, prompt: sample.why }) },
    }),
    post("detokenize", "detokenize", [detokenize.schema, detokenizedText], {
      examples: { tokens: example("Three tokens", { model, tokens: [1, 2, 3] }) },
    }),
  ],
};

/** The tokens of a text, and the text of tokens, in the way of vLLM. */
export const api: Api = {
  prefix: "",
  descriptions: [describeTokens],
  endpoints: [
    { ...ofMedia, kind: "tokenize", path: "/tokenize" },
    { ...ofMedia, kind: "detokenize", path: "/detokenize" },
  ],
};
