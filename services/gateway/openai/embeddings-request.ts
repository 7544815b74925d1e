import { z } from "zod";
import { modelId } from "#shared/model/model.ts";
import { embedBody, embedInputsMax, type EmbedBody } from "#shared/protocol/embed-body.ts";
import { readShape } from "../intake/read-shape.ts";
import { dropNulls } from "./drop-what-says-nothing.ts";
import { refuseTokens } from "./refuse-tokens.ts";

const text = z.string().min(1);

/** An embeddings request as OpenAI's clients write it. A null field counts as missing. */
export const embeddingsRequest = z.object({
  model: modelId,
  input: z.union([text, z.array(text).min(1).max(embedInputsMax)]),
  encoding_format: z.enum(["float", "base64"]).nullish(),
  dimensions: embedBody.shape.dimensions.nullable(),
});

export interface ReadEmbeddingsRequest {
  readonly model: string;
  /** The encoding of the vectors in the answer. */
  readonly format: "float" | "base64";
  readonly body: EmbedBody;
  readonly ignored: readonly string[];
}

/** Reads an embeddings request and translates it to the job body. */
export function readEmbeddingsRequest(input: Record<string, unknown>): ReadEmbeddingsRequest {
  dropNulls(input);
  refuseTokens(input["input"], "input");
  const { value, ignored } = readShape(embeddingsRequest, input);
  const { model, input: texts, encoding_format: format, dimensions } = value;
  const body = { input: typeof texts === "string" ? [texts] : texts };
  return {
    model,
    format: format ?? "float",
    body: typeof dimensions === "number" ? { ...body, dimensions } : body,
    ignored,
  };
}
