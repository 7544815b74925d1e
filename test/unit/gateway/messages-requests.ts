import type { Fault } from "#shared/fault/fault.ts";
import { readMessageRequest } from "../../../services/gateway/apis/messages/message-request.ts";
import { faultThrownBy } from "../../harness/fault-thrown-by.ts";

export const used = (id: string, input: object = {}) => ({ type: "tool_use", id, name: "weather", input });
export const gave = (id: string, fields: object = {}) => ({
  type: "tool_result",
  tool_use_id: id,
  content: "12 °C",
  ...fields,
});
export const weather = { name: "weather", description: "The weather", input_schema: { type: "object" } };

/** Reads a request that says hello with these fields on top; it is read from JSON, as every request is. */
export function readMessage(fields: Readonly<Record<string, unknown>> = {}): ReturnType<typeof readMessageRequest> {
  const usual = { model: "llama3", max_tokens: 64, messages: [{ role: "user", content: "Hello" }] };
  return readMessageRequest(JSON.parse(JSON.stringify({ ...usual, ...fields })));
}

/** The fault of such a request, as a client can tell it from others: its code and where it is. */
export function faultOf(fields: Readonly<Record<string, unknown>>): { code: string; param: string | undefined } {
  const { code, param } = thrownBy(fields);
  return { code, param };
}

export function thrownBy(fields: Readonly<Record<string, unknown>>): Fault {
  return faultThrownBy(() => readMessage(fields));
}
