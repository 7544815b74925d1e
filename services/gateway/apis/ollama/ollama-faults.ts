import { faultEntry, type Fault } from "#shared/fault/fault.ts";
import { faultBody } from "../../http/answer-faults.ts";
import type { FaultShape } from "../../http/request-state.ts";

/** Returns Ollama's error body, a text, with the code and the path of Trunkline's faults beside it. */
export function ollamaFaultBody(fault: Fault) {
  const { message, param, code } = faultBody(fault).error;
  // The `ollama` command shows `status` of a 401, and not its `error`.
  const status = faultEntry(fault.code).status === 401 ? { status: message } : {};
  return { error: message, ...status, code, param };
}

/** The shape of errors at the paths of this API. */
export const ollamaFaults: FaultShape = { prefix: "/api", body: ollamaFaultBody };
