import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { modelId } from "#shared/model/model.ts";
import {
  completeBody,
  completionsMax,
  type CompleteBody,
  embedBody,
  embedInputsMax,
  type EmbedBody,
} from "#shared/protocol/job-bodies.ts";
import { readShape } from "../http/read-shape.ts";
import {
  dropEmptyLists,
  dropNulls,
  refuseTokens,
  samplingFields,
  stopStrings,
  streamFields,
  streamWish,
  type StreamWish,
} from "./request-fields.ts";
import { refuseFieldsOfChats } from "./unsupported-fields.ts";

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
  n: inner.n.nullable(),
  best_of: inner.n.nullable(),
  logprobs: inner.logprobs.nullable(),
  logit_bias: inner.logit_bias.nullable(),
});
type CompletionRequest = z.infer<typeof completionRequest>;

export interface ReadCompletionRequest extends StreamWish {
  readonly model: string;
  readonly body: CompleteBody;
  readonly ignored: readonly string[];
}

/** Reads a legacy completion request and translates it to the job body. */
export function readCompletionRequest(input: Record<string, unknown>): ReadCompletionRequest {
  dropNulls(input);
  dropEmptyLists(input, ["stop"]);
  refuseFieldsOfChats(input);
  refuseTokens(input["prompt"], "prompt");
  const { value, ignored } = readShape(completionRequest, input);
  checkTogether(value);
  return {
    model: value.model,
    ...streamWish(value),
    body: bodyOf(value),
    ignored,
  };
}

/**
 * Returns the job body. `readCompletionRequest` has already removed null fields, so every remaining field has a value.
 */
function bodyOf(request: CompletionRequest): CompleteBody {
  const { model: _m, stream: _s, stream_options: _o, best_of: _b, prompt, suffix, stop, ...same } = request;
  const prompts = typeof prompt === "string" ? [prompt] : prompt;
  const body = { max_tokens: maxTokensByDefault, ...same, prompts, ...stopStrings(stop) };
  return (suffix ? { ...body, suffix } : body) as CompleteBody;
}

/** Checks rules that involve two fields, which the schema of a single field cannot express. */
function checkTogether(request: CompletionRequest): void {
  const { prompt, n, best_of: bestOf, echo, logprobs } = request;
  const each = n ?? 1;
  if (typeof bestOf === "number" && bestOf !== each) {
    throw new Fault("unsupported_value", {
      message: "'best_of' must equal 'n'.",
      param: "best_of",
    });
  }
  if (Array.isArray(prompt) && prompt.length * each > completionsMax) {
    throw new Fault("invalid_value", {
      message: `'prompt' times 'n' must give at most ${completionsMax} answers (completionsMax).`,
      param: "n",
    });
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
