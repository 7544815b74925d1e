import type { FaultCode } from "#shared/fault/fault.ts";

/** A request that no machine has completed yet, as far as the next step depends on it. */
export interface FaultFacts {
  /** The code of the last failure or refusal. */
  readonly code: FaultCode;
  /** True if a machine had taken the job, and failed. */
  readonly taken: boolean;
  /** True if a part of the answer was passed on. */
  readonly hasSaid: boolean;
  /** True if the client or the gateway is about to leave: a client asks again for what its machine has lost. */
  readonly isLeaving: boolean;
  /** True if the model or the runtime lacks the effort that the request asks for, and may run without. */
  readonly lacksEffort: boolean;
  /** True if another machine can go on with the answer. */
  readonly canGoOn: boolean;
  /** The machines of this target that took the job and failed. */
  readonly failures: number;
  /** The machines of this target that may take it in place of the one that just failed. */
  readonly others: number;
  /** How often the machines of this target were ranked. */
  readonly rounds: number;
  readonly isLastTarget: boolean;
}

/** Limits how often a request is placed on another machine of the same target after its machine failed. */
export const failoversMax = 2;
/** Limits the rounds of ranking and offering, when all machines of a round turned out to be away. */
export const roundsMax = 3;

/** Faults that another machine may avoid. A runtime timeout is not among them: it would take as long again. */
const retryableCodes: ReadonlySet<FaultCode> = new Set([
  "agent_disconnected",
  "agent_offline",
  "internal_error",
  "model_not_found",
  "runtime_offline",
  "server_is_overloaded",
  "shutting_down",
  "upstream_error",
]);

/** Faults of an answer that another machine may go on with, besides those. */
const continuedAfter: ReadonlySet<FaultCode> = new Set([...retryableCodes, "stream_gap"]);

/** True for a fault that another machine may avoid, at least with the rest of an answer of which a part was passed on. */
export function isAvoidable({ code, hasSaid }: Pick<FaultFacts, "code" | "hasSaid">): boolean {
  return (hasSaid ? continuedAfter : retryableCodes).has(code);
}

/**
 * Decides where a request goes that a machine failed, or that no machine took.
 *
 * - An effort that the model lacks is left out, once.
 * - A part of the answer was passed on: only a machine that can go on with it is asked.
 * - A machine failed: another one of the same target is tried, at most `failoversMax` times, then the next target.
 * - Nobody took it: the next target is tried. At the last one the machines that were away are waited for and ranked again,
 *   unless one of them already worked on the request: its fault is told.
 */
export function afterFault(
  facts: FaultFacts,
): "without effort" | "go on elsewhere" | "another machine" | "rank again" | "next target" | "end" {
  const { code, taken, hasSaid, failures, rounds, isLastTarget } = facts;
  const isOver = facts.isLeaving || !isAvoidable(facts);
  if (facts.lacksEffort && !hasSaid) return "without effort";
  if (hasSaid) return taken && !isOver && facts.canGoOn ? "go on elsewhere" : "end";
  if (taken) {
    if (isOver) return "end";
    return facts.others > 0 && failures <= failoversMax ? "another machine" : "next target";
  }
  const isWaitedFor = isLastTarget && failures === 0 && code === "agent_offline" && rounds < roundsMax;
  return isWaitedFor ? "rank again" : "next target";
}
