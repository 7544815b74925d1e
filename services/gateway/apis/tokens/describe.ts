import { z } from "zod";
import { tokenEndpoints } from "./token-request.ts";
import { count, text } from "../answer-parts.ts";
import { type ApiDescription, post } from "../description.ts";
import { example, sample } from "../example-requests.ts";

const tokenList = z.object({
  count: count.describe("The number of the tokens."),
  max_model_len: count.describe("The model's window, in tokens."),
  tokens: z.array(count).describe("The ids of the tokens."),
  token_strs: z.array(z.string()).nullable().describe("The tokens as text, with `return_token_strs`."),
});
const detokenizedText = z.object({ prompt: text("The text.") });
const { tokenize, detokenize } = tokenEndpoints;
const model = "llama3.2";

export const describeTokens: ApiDescription = {
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
