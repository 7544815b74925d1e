import type { Fault } from "#shared/fault/fault.ts";
import { readResponseRequest } from "../../../services/gateway/apis/responses/response-request.ts";
import { faultThrownBy } from "../../harness/fault-thrown-by.ts";

export const called = (id: string) => ({ type: "function_call", call_id: id, name: "weather", arguments: "{}" });
export const gave = (id: string) => ({ type: "function_call_output", call_id: id, output: "12 °C" });
export const weather = { type: "function", name: "weather", parameters: { type: "object" } };

/** Reads a request that says hello with these fields on top; it is read from JSON, as every request is. */
export function readResponse(fields: Readonly<Record<string, unknown>> = {}): ReturnType<typeof readResponseRequest> {
  return readResponseRequest(JSON.parse(JSON.stringify({ model: "llama3", input: "Hello", ...fields })));
}

/** The fault of such a request, as a client can tell it from others: its code and where it is. */
export function faultOf(fields: Readonly<Record<string, unknown>>): { code: string; param: string | undefined } {
  const { code, param } = thrownBy(fields);
  return { code, param };
}

export function thrownBy(fields: Readonly<Record<string, unknown>>): Fault {
  return faultThrownBy(() => readResponse(fields));
}
