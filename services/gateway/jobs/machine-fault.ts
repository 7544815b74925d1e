import { faultEntry, isFaultCode, type FaultCode, Fault } from "#shared/fault/fault.ts";
import { scrub } from "#shared/process/clean-text.ts";
import type { FaultPayload, RejectPayload } from "#shared/protocol/frame-payload.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { JobKind } from "#shared/protocol/job.ts";

/**
 * Fault codes that a machine may report for a job. They concern the request and the runtime, never keys or this
 * gateway.
 */
const reportableCodes: ReadonlySet<FaultCode> = new Set([
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
  "model_loading",
  "server_is_overloaded",
  "shutting_down",
]);

/**
 * Returns the fault that a machine reported in a fault frame. A code that it may not report becomes the machine's own
 * failure.
 */
export function machineFault(reported: FaultPayload | undefined, kind: JobKind): Fault {
  if (reported === undefined) return machineDisconnected("the fault frame could not be read");
  if (reported.code === "cancelled") return machineDisconnected("the agent cancelled the job by itself");
  const { code: told } = reported;
  // The owner of a machine decides what may be done to its models, so a manage job may report missing permissions.
  const mayForbid = kind === "manage" && told === "insufficient_permissions";
  const code = isFaultCode(told) && (reportableCodes.has(told) || mayForbid) ? told : "upstream_error";
  const isRefusal = faultEntry(code).status < 500;
  const reason = reported.reason ?? (isRefusal ? undefined : reported.message);
  return new Fault(code, {
    message: reported.message,
    param: reported.param,
    retryAfterSeconds: code === "model_loading" ? reported.retryAfterSeconds : undefined,
    told: reason && plainReason(reason),
    died: reported.runtimeDied ? "runtime" : undefined,
  });
}

/** Characters of a machine's own words that operators can see. */
export const toldCharactersMax = 200;

/** Returns a machine's reason for operators: one short line of plain characters, without secrets. */
function plainReason(reason: string): string {
  return scrub(reason.replaceAll(/[^ -~]+/g, " ")).slice(0, toldCharactersMax);
}

export function machineDisconnected(internal: string): Fault {
  return new Fault("agent_disconnected", { message: "The GPU machine stopped answering.", internal, died: "machine" });
}

/** Returns the fault of a machine that violated the wire protocol. */
export function machineBrokeRules(what: string): Fault {
  return new Fault("upstream_error", {
    message: "The GPU machine violated the protocol, so the gateway ended its answer.",
    internal: `the machine violated the protocol: ${what}`,
  });
}

/** Returns the fault of a job that no machine accepted. `died` if the machine may have died of the job. */
export function machineOffline(died?: "machine"): Fault {
  return new Fault("agent_offline", {
    message: "The GPU machine that serves this model is not reachable.",
    param: "model",
    died,
  });
}

/** Returns the fault of a job that a machine refused and did not begin. */
export function rejectFault(reported: RejectPayload | undefined): Fault {
  switch (reported?.reason) {
    case "busy":
      return new Fault("server_is_overloaded", { message: reported.message, told: plainReason(reported.message) });
    case "draining":
      return machineOffline();
    case "unknown_model":
      return new Fault("agent_offline", { message: "The machine no longer offers this model.", param: "model" });
    case "unsupported":
    case "malformed":
    case undefined:
      return new Fault("upstream_error", {
        message: "The agent does not support this request; update the agent or the gateway.",
        told: reported && plainReason(reported.message),
      });
  }
}

/** Returns the fault of a client that resumes an answer which its machine does not have for its key. */
export function answerNotFound(): Fault {
  return new Fault("answer_not_found", {
    message: `No answer of this key can be resumed there: it is unknown, was left over 2 minutes ago (resumableForMs), has over ${limits.resumableBytes} bytes (resumableBytes), or was resumed ${limits.resumesMax} times (resumesMax). Ask for a new answer without that header.`,
    param: "Last-Event-ID",
  });
}

/** Returns the fault of a request whose client resumes its answer by another one. */
export function resumedElsewhere(): Fault {
  return new Fault("client_closed", { message: "The client resumes its answer by another request." });
}

/** Returns the fault of a resumable answer that got too long after its client had left. */
export function leftTooLong(): Fault {
  return new Fault("client_closed", {
    message: `The client left, and the answer is longer than the ${limits.resumableBytes} bytes that are kept for it (resumableBytes).`,
  });
}

/** Returns the fault of a gateway that was cut off from its broker for too long. */
export function cutOffTooLong(): Fault {
  return new Fault("backend_unavailable", { message: "The gateway lost its connection to the broker." });
}

export function tookTooLong(remainingMs: number): Fault {
  return new Fault("upstream_timeout", { message: `The request took longer than ${remainingMs} ms in all.` });
}

/** Returns the fault of an answer of which frames did not come again. */
export function streamGap(internal: string): Fault {
  return new Fault("stream_gap", {
    message: "Part of the answer was lost between the machine and the gateway.",
    internal,
  });
}
