import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { modelId } from "#shared/protocol/model.ts";
import { completeBody, completionsMax, type CompleteBody } from "#shared/protocol/job-bodies.ts";
import { readShape } from "../../http/read-json.ts";
import { completionCeiling, estimateContinued } from "../../limits/token-estimates.ts";
import { jobBody, type ReadRequest, type Reads, type Translated } from "../../requests/read-request.ts";
import { blocksOfText } from "../../routing/prompt-blocks.ts";
import { innerSampling, runtimeSampling, withoutRuntimeFields } from "../../chats/runtime-fields.ts";
import type { CompletionForm } from "../../chats/runtime-fields.ts";
import {
  dropNulls,
  dropUnset,
  invalidValue,
  refuseTokens,
  samplingFields,
  stopStrings,
  completionChoice,
  costField,
  streamFields,
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
  ...costField,
  suffix: z.string().nullish(),
  echo: inner.echo.nullable(),
  max_tokens: inner.max_tokens.nullable(),
  ...samplingFields,
  ...runtimeSampling,
  n: inner.n.nullable(),
  best_of: inner.n.nullable(),
  logprobs: inner.logprobs.nullable(),
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

export const reads: Reads = {
  completion: { read: (input, { promptSeed }) => readAsCompletion(readCompletionRequest(input), promptSeed) },
};

/** Reads a request of any API whose text is continued as it is. */
export function readAsCompletion<Form>(
  { body, ...request }: Translated<CompleteBody, Form>,
  promptSeed = 0,
): ReadRequest<Form> {
  const estimate = estimateContinued(body);
  const [text, ...others] = body.prompts;
  const job = jobBody(body);
  return {
    ...request,
    kind: "complete",
    needs: {
      capability: "completion",
      tools: false,
      imageParam: undefined,
      promptTokens: estimate.promptTokens,
      answerTokensMax: body.max_tokens,
      answers: body.n,
      prompt: text === undefined || others.length > 0 ? undefined : blocksOfText(text, promptSeed),
    },
    ...job,
    ...estimate,
    ceiling: completionCeiling(body, job.body.byteLength),
  };
}

/** Reads a legacy completion request and translates it to the job body. */
export function readCompletionRequest(input: Record<string, unknown>): Translated<CompleteBody, CompletionForm> {
  dropNulls(input);
  const isUnlimited = input["max_tokens"] === -1;
  dropUnset(input);
  refuseFields(input, unsupportedCompletionFields);
  refuseTokens(input["prompt"], "prompt");
  const { value, ignored } = readShape(completionRequest, input);
  checkTogether(value);
  const { fields, sentNames } = innerSampling(value);
  const { stream, ...usage } = completionChoice(value);
  return {
    model: value.model,
    stream,
    body: { ...bodyOf(value, isUnlimited), ...fields } as CompleteBody,
    ignored,
    form: { ...usage, sentNames },
  };
}

/**
 * Returns the job body. `readCompletionRequest` has already removed null fields, so every remaining field has a value.
 */
function bodyOf(request: CompletionRequest, isUnlimited: boolean): CompleteBody {
  const { model: _m, stream: _s, stream_options: _o, usage: _u, best_of: _b, prompt, suffix, stop, ...same } = request;
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
