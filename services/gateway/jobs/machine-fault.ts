import { faultEntry, isFaultCode, type FaultCode, Fault } from "#shared/fault/fault.ts";
import { scrub } from "#shared/process/log.ts";
import { faultReasonCharactersMax, type FaultPayload } from "#shared/protocol/frame-payload.ts";
import type { JobKind } from "#shared/protocol/job.ts";

/**
 * Fault codes that a machine may report for a job. They concern the request and the runtime, never keys or this
 * gateway.
 */
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

/**
 * Returns the fault that a machine reported in a fault frame. A code that it may not report becomes the machine's own
 * failure.
 */
export function machineFault(told: FaultPayload | undefined, kind: JobKind): Fault {
  if (told === undefined) return machineDisconnected("the fault frame could not be read");
  if (told.code === "cancelled") return machineDisconnected("the agent cancelled the job by itself");
  const code = isFaultCode(told.code) && maySay(told.code, kind) ? told.code : "upstream_error";
  const isRefusal = faultEntry(code).status < 500;
  const reason = told.reason ?? (isRefusal ? undefined : told.message);
  const internal = reason === undefined ? undefined : plainReason(reason);
  return new Fault(code, { message: told.message, param: told.param, internal, runtimeDied: told.runtimeDied });
}

/** Returns a machine's reason for logs and terminals: one short line of plain characters, without secrets. */
export function plainReason(told: string): string {
  return scrub(told.replaceAll(/[^ -~]+/g, " ")).slice(0, faultReasonCharactersMax);
}

/**
 * True if a machine may report this code. Its owner decides what may be done to its models, so a manage job may also
 * report missing permissions.
 */
function maySay(code: FaultCode, kind: JobKind): boolean {
  return sayable.has(code) || (kind === "manage" && code === "insufficient_permissions");
}

export function machineDisconnected(internal: string): Fault {
  return new Fault("agent_disconnected", { message: "The GPU machine stopped answering.", internal });
}

/** Returns the fault of a machine that violated the wire protocol. */
export function machineBrokeRules(what: string): Fault {
  return new Fault("upstream_error", {
    message: "The GPU machine violated the protocol, so the gateway ended its answer.",
    internal: `the machine violated the protocol: ${what}`,
  });
}

export function machineOffline(): Fault {
  return new Fault("agent_offline", {
    message: "The GPU machine that serves this model is not reachable.",
    param: "model",
  });
}
