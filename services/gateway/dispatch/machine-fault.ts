import { isFaultCode, type FaultCode } from "#shared/fault/fault-code.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { FaultPayload } from "#shared/protocol/frame-payload.ts";
import type { JobKind } from "#shared/protocol/job.ts";

/** What a machine may say of a job. It speaks of the request and of its runtime, never of keys or of this gateway. */
const sayable: ReadonlySet<FaultCode> = new Set([
  "bad_request",
  "invalid_value",
  "unsupported_parameter",
  "unsupported_value",
  "context_length_exceeded",
  "model_does_not_support_tools",
  "model_not_found",
  "internal_error",
  "upstream_error",
  "upstream_timeout",
  "runtime_offline",
  "server_is_overloaded",
  "shutting_down",
]);

/** The fault that a machine told in a fault frame; what it has no business to say is shown as the machine's own failure. */
export function machineFault(told: FaultPayload | undefined, kind: JobKind): Fault {
  if (told === undefined) return machineDisconnected("the fault frame could not be read");
  if (told.code === "cancelled") return machineDisconnected("the agent cancelled the job by itself");
  const code = isFaultCode(told.code) && maySay(told.code, kind) ? told.code : "upstream_error";
  return new Fault(code, { message: told.message, param: told.param, runtimeDied: told.runtimeDied });
}

/** What may be done to a machine's models is for its owner to allow, so of that it speaks too. */
function maySay(code: FaultCode, kind: JobKind): boolean {
  return sayable.has(code) || (kind === "manage" && code === "insufficient_permissions");
}

export function machineDisconnected(internal: string): Fault {
  return new Fault("agent_disconnected", { message: "The GPU machine stopped answering.", internal });
}

export function machineOffline(): Fault {
  return new Fault("agent_offline", {
    message: "The GPU machine that serves this model is not reachable.",
    param: "model",
  });
}
