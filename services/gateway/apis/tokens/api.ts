import type { Api } from "../api.ts";
import { describeTokens } from "./describe.ts";
import { ofMedia } from "../media/render-media.ts";

/** The tokens of a text, and the text of tokens, in the way of vLLM. */
export const api: Api = {
  prefix: "",
  descriptions: [describeTokens],
  endpoints: [
    { ...ofMedia, kind: "tokenize", path: "/tokenize" },
    { ...ofMedia, kind: "detokenize", path: "/detokenize" },
  ],
};
