import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { modelId } from "#shared/protocol/model.ts";
import {
  completeBody,
  completionsMax,
  type CompleteBody,
  embedBody,
  embedInputsMax,
  type EmbedBody,
} from "#shared/protocol/job-bodies.ts";
import { readShape } from "../../http/read-shape.ts";
import { innerSampling, runtimeSampling, withoutRuntimeFields, type SentNames } from "../../chats/runtime-fields.ts";
import {
  dropNulls,
  dropUnset,
  invalidValue,
  refuseTokens,
  samplingFields,
  stopStrings,
  streamFields,
  streamChoice,
  type StreamChoice,
  refuseFields,
  type UnsupportedFields,
} from "../../requests/request-fields.ts";

/** OpenAI's default for `max_tokens`. */
const maxTokensByDefault = 16;

const inner = completeBody.shape;

/** A legacy completion request as OpenAI's clients write it. A null field counts as missing. */
export const completionRequest = z.object({
  model: modelId,
  prompt: z.union([z.string(), z.array(z.string()).min(1).max(completionsMax)]),
  ...streamFields,
  suffix: z.string().nullish(),
  echo: inner.echo.nullable(),
  max_tokens: inner.max_tokens.nullable(),
  ...samplingFields,
  ...runtimeSampling,
  n: inner.n.nullable(),
  best_of: inner.n.nullable(),
  logprobs: inner.logprobs
    .nullable()
    .describe("The number of likely others that are told beside each token, which is told itself."),
  logit_bias: inner.logit_bias.nullable(),
});
type CompletionRequest = z.infer<typeof completionRequest>;

const onlyWithChats = { why: "is a field of chats; a text is continued as it is" };
const unsupportedCompletionFields: UnsupportedFields = {
  max_completion_tokens: { why: "is a field of chats; send 'max_tokens'" },
  response_format: onlyWithChats,
  grammar: onlyWithChats,
  structured_outputs: onlyWithChats,
  guided_json: onlyWithChats,
  guided_regex: onlyWithChats,
  guided_choice: onlyWithChats,
  guided_grammar: onlyWithChats,
};

export interface ReadCompletionRequest extends StreamChoice {
  readonly model: string;
  readonly body: CompleteBody;
  readonly ignored: readonly string[];
  readonly sentNames: SentNames;
}

/** Reads a legacy completion request and translates it to the job body. */
export function readCompletionRequest(input: Record<string, unknown>): ReadCompletionRequest {
  dropNulls(input);
  const isUnlimited = input["max_tokens"] === -1;
  dropUnset(input);
  refuseFields(input, unsupportedCompletionFields);
  refuseTokens(input["prompt"], "prompt");
  const { value, ignored } = readShape(completionRequest, input);
  checkTogether(value);
  const sampling = innerSampling(value);
  return {
    model: value.model,
    ...streamChoice(value),
    body: { ...bodyOf(value, isUnlimited), ...sampling.fields } as CompleteBody,
    ignored,
    sentNames: sampling.sentNames,
  };
}

/**
 * Returns the job body. `readCompletionRequest` has already removed null fields, so every remaining field has a value.
 */
function bodyOf(request: CompletionRequest, isUnlimited: boolean): CompleteBody {
  const { model: _m, stream: _s, stream_options: _o, best_of: _b, prompt, suffix, stop, ...same } = request;
  const limit = isUnlimited ? {} : { max_tokens: maxTokensByDefault };
  const body = { ...limit, ...withoutRuntimeFields(same), prompts: [prompt].flat(), ...stopStrings(stop) };
  return suffix ? { ...body, suffix } : body;
}

/** Checks rules that involve two fields, which the schema of a single field cannot express. */
function checkTogether(request: CompletionRequest): void {
  const { prompt, n, best_of: bestOf, echo, logprobs } = request;
  const each = n ?? 1;
  if (typeof bestOf === "number" && bestOf !== each) {
    throw new Fault("unsupported_value", { message: "'best_of' must equal 'n'.", param: "best_of" });
  }
  if (Array.isArray(prompt) && prompt.length * each > completionsMax) {
    throw invalidValue("n", `'prompt' times 'n' must give at most ${completionsMax} answers (completionsMax).`);
  }
  if (echo === true && typeof logprobs === "number") {
    throw new Fault("unsupported_value", {
      message: "'logprobs' is not supported together with 'echo': log probabilities of a prompt are not available.",
      param: "logprobs",
    });
  }
}

const text = z.string().min(1);

/** An embeddings request as OpenAI's clients write it. A null field counts as missing. */
export const embeddingsRequest = z.object({
  model: modelId.describe("The id of a model whose `capabilities.embedding` is true."),
  input: z
    .union([text, z.array(text).min(1).max(embedInputsMax)])
    .describe(
      "The text that is to become a vector, or several. Token ids are read as those of `cl100k_base`, as LangChain sends them.",
    ),
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

/** True if the bytes of an embeddings request seem to hold tokens in place of texts. */
export function seemToHoldTokens(bytes: Buffer): boolean {
  const at = bytes.indexOf('"input"');
  return at !== -1 && /^"input"\s*:\s*\[\s*[[\d]/.test(bytes.toString("latin1", at, at + 64));
}

/** Returns the texts of token lists. Everything else is left to the schema. */
function textsFor(input: unknown, textOfTokens: TextOfTokens): unknown {
  if (!Array.isArray(input)) return input;
  if (typeof input[0] === "number") return textOfTokens(input, "input");
  return input.map((each, place) => (Array.isArray(each) ? textOfTokens(each, `input[${place}]`) : each));
}

/** Returns the text of a list of token ids, which stands at `param`. */
export type TextOfTokens = (ids: readonly unknown[], param: string) => string;

/** Reads an embeddings request and translates it to the job body. Without `textOfTokens`, tokens are refused. */
export function readEmbeddingsRequest(
  input: Record<string, unknown>,
  textOfTokens?: TextOfTokens,
): ReadEmbeddingsRequest {
  dropNulls(input);
  if (textOfTokens === undefined) refuseTokens(input["input"], "input");
  else input["input"] = textsFor(input["input"], textOfTokens);
  const { value, ignored } = readShape(embeddingsRequest, input);
  const { model, input: texts, encoding_format: format, dimensions } = value;
  const body = {
    input: typeof texts === "string" ? [texts] : texts,
    ...(typeof dimensions === "number" && { dimensions }),
  };
  return { model, format: format ?? "float", body, ignored };
}
