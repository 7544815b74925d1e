import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { faultForResponses } from "../../../services/gateway/apis/responses/render-response.ts";

test.each([
  ["response_format", "text.format"],
  ["response_format.json_schema.schema", "text.format.schema"],
  ["reasoning_effort", "reasoning.effort"],
  ["max_tokens", "max_output_tokens"],
  ["logprobs", "include"],
  ["messages", "input"],
  ["messages[3].content[1]", "input"],
  ["tools[2].function.parameters", "tools"],
  ["tool_choice", "tool_choice"],
  ["top_logprobs", "top_logprobs"],
  ["model", "model"],
])("what machines call %s is told as %s", (param, own) => {
  const message = `The runtime cannot honour '${param}'.`;
  const told = faultForResponses(new Fault("unsupported_parameter", { message, param, internal: "why" }));
  expect(told).toMatchObject({ param: own, message: `The runtime cannot honour '${own}'.`, internal: "why" });
});

test("a fault of nothing in the request is told as it is", () => {
  const fault = new Fault("server_is_overloaded", { message: "The queue is full.", retryAfterSeconds: 3 });
  expect(faultForResponses(fault)).toBe(fault);
});
