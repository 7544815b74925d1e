import type { FaultCode } from "#shared/fault/fault.ts";

/** A request that no machine has completed yet, as far as the next step depends on it. */
export interface StepFacts {
  /** The code of the last failure or refusal. */
  readonly code: FaultCode;
  /** The machines of this target that took the job and failed. */
  readonly failures: number;
  /** The machines of this target that may take it in place of the one that just failed. Undefined if none had taken it. */
  readonly others: number | undefined;
  /** How often the machines of this target were ranked. */
  readonly rounds: number;
  readonly isLastTarget: boolean;
}

/** Limits how often a request is placed on another machine of the same target after its machine failed. */
export const failoversMax = 2;
/** Limits the rounds of ranking and offering, when all machines of a round turned out to be away. */
export const roundsMax = 3;

/**
 * Decides where a request goes that a machine failed, or that no machine took.
 *
 * - A machine failed: another one of the same target is tried, at most `failoversMax` times, then the next target.
 * - Nobody took it: the next target is tried. At the last one the machines that were away are waited for and ranked again,
 *   unless one of them already worked on the request: its fault is told.
 */
export function nextStep(facts: StepFacts): "another machine" | "rank again" | "next target" {
  const { code, failures, others, rounds, isLastTarget } = facts;
  if (others !== undefined) return others > 0 && failures <= failoversMax ? "another machine" : "next target";
  const isWaitedFor = isLastTarget && failures === 0 && code === "agent_offline" && rounds < roundsMax;
  return isWaitedFor ? "rank again" : "next target";
}
