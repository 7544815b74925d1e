import { expect, test } from "vitest";
import { completeBody } from "#shared/protocol/job-bodies.ts";
import { readCompletionRequest } from "../../../services/gateway/apis/completions/completion-request.ts";
import { reading } from "./reading-requests.ts";

const { read, faultOf } = reading(readCompletionRequest, { model: "llama3", prompt: "Once" });

test("a legacy completion request needs a model and a prompt, and gets sixteen tokens as OpenAI gives them", () => {
  expect(read()).toEqual({
    model: "llama3",
    stream: false,
    ignored: [],
    form: { includeUsage: false, tellsCost: false, sentNames: {} },
    body: { prompts: ["Once"], max_tokens: 16 },
  });
});

test("a legacy completion request is handed on with everything that changes the answer, in the one form that agents take", () => {
  const fields = {
    suffix: "the end",
    echo: true,
    max_tokens: 5,
    temperature: 0,
    top_p: 1,
    frequency_penalty: -2,
    presence_penalty: 2,
    seed: -7,
    n: 2,
    logit_bias: { "50256": -100 },
  };
  const asked = { ...fields, prompt: ["Once", ""], stop: "END", best_of: 2, user: "ann" };
  const { body, ignored } = read({ ...asked, stream: true, stream_options: { include_usage: true } });
  expect(body).toEqual({ ...fields, prompts: ["Once", ""], stop: ["END"] });
  expect(completeBody.parse(body)).toEqual(body);
  expect(ignored).toEqual(["user"]);
});

test("a legacy completion request with an empty suffix is one without it", () => {
  expect(read({ suffix: "" })).toEqual(read());
});

test.each<[string, string, Record<string, unknown>]>([
  ["missing_required_parameter", "prompt", { prompt: undefined }],
  ["invalid_type", "prompt", { prompt: 7 }],
  ["invalid_type", "prompt", { prompt: [1, 2] }],
  ["empty_array", "prompt", { prompt: [] }],
  ["array_above_max_length", "prompt", { prompt: Array.from({ length: 129 }, () => "x") }],
  ["invalid_value", "n", { prompt: ["x", "y"], n: 65 }],
  ["unsupported_value", "best_of", { best_of: 3 }],
  ["unsupported_value", "best_of", { best_of: 1, n: 2 }],
  ["integer_above_max_value", "logprobs", { logprobs: 6 }],
  ["unsupported_value", "logprobs", { logprobs: 1, echo: true }],
  ["invalid_value", "stream_options", { stream_options: { include_usage: true } }],
  ["unsupported_parameter", "max_completion_tokens", { max_completion_tokens: 5 }],
  ["unsupported_parameter", "response_format", { response_format: { type: "json_object" } }],
])("a legacy completion request is told %s at %s: %o", (code, param, fields) => {
  expect(faultOf(fields)).toEqual({ code, param });
});
