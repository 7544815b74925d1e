import { z } from "zod";
import { embedBody, type EmbedBody, embedInputsMax } from "#shared/protocol/job-bodies.ts";
import { modelId } from "#shared/protocol/model.ts";
import { readShape } from "../../http/read-json.ts";
import { embeddingCeiling, estimateTexts } from "../../limits/token-estimates.ts";
import { readAsTexts } from "../../requests/read-request.ts";
import type { ReadRequest, Reads, TextOfTokens, Translated } from "../../requests/read-request.ts";
import { dropNulls, refuseTokens } from "../../requests/request-fields.ts";

const text = z.string().min(1);

/** An embeddings request as OpenAI's clients write it. A null field counts as missing. */
export const embeddingsRequest = z.object({
  model: modelId.describe("The id of a model whose `capabilities.embedding` is true."),
  input: z.union([text, z.array(text).min(1).max(embedInputsMax)]),
  encoding_format: z.enum(["float", "base64"]).nullish(),
  dimensions: embedBody.shape.dimensions.nullable(),
});

/** Encoding of vectors: numbers, or base64 of 32-bit floats, little-endian. */
export type VectorFormat = "float" | "base64";

export const reads: Reads = {
  embeddings: {
    read: (input, { textOfTokens }) => readAsEmbeddings(readEmbeddingsRequest(input, textOfTokens)),
    isSlow: seemToHoldTokens,
  },
};

/** Reads a request of any API for the vectors of texts. */
export function readAsEmbeddings<Form>(request: Translated<EmbedBody, Form>): ReadRequest<Form> {
  const { body } = request;
  const ceilingOf = (bytes: number) => embeddingCeiling(body, bytes);
  return readAsTexts(request, { kind: "embed", tokens: estimateTexts(body.input), ceilingOf });
}

/** True if the bytes of an embeddings request seem to hold tokens in place of texts. */
export function seemToHoldTokens(bytes: Buffer): boolean {
  const at = bytes.indexOf('"input"');
  return at !== -1 && /^"input"\s*:\s*\[\s*[[\d]/.test(bytes.toString("latin1", at, at + 64));
}

/** Returns the texts of token lists. Everything else is left to the schema. */
function textsFor(input: unknown, textOfTokens: TextOfTokens): unknown {
  if (!Array.isArray(input)) return input;
  if (typeof input[0] === "number") return textOfTokens(input, "input");
  return input.map((each, index) => (Array.isArray(each) ? textOfTokens(each, `input[${index}]`) : each));
}

/** Reads an embeddings request and translates it to the job body. Without `textOfTokens`, tokens are refused. */
export function readEmbeddingsRequest(
  input: Record<string, unknown>,
  textOfTokens?: TextOfTokens,
): Translated<EmbedBody, VectorFormat> {
  dropNulls(input);
  if (textOfTokens === undefined) refuseTokens(input["input"], "input");
  else input["input"] = textsFor(input["input"], textOfTokens);
  const { value, ignored } = readShape(embeddingsRequest, input);
  const { model, input: texts, encoding_format: format, dimensions } = value;
  const body = {
    input: typeof texts === "string" ? [texts] : texts,
    ...(typeof dimensions === "number" && { dimensions }),
  };
  return { model, stream: false, body, ignored, form: format ?? "float" };
}
