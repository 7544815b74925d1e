import { Fault } from "#shared/fault/fault.ts";
import type { AnswerBound } from "../jobs/answer-course.ts";
import { GrowingHold } from "../limits/growing-hold.ts";
import type { Settlements } from "../limits/settlements.ts";
import { mayGrow } from "./admit.ts";
import type { ModelRequest } from "./request.ts";

/** The bound of an answer by what the limits of its key have left. */
export interface AnswerAllowance {
  /** Undefined for an answer that no limit can end. */
  readonly bound: AnswerBound | undefined;
  /** Returns the limit at which the answer was left. */
  readonly spent: () => string | undefined;
}

/**
 * Lets the reservation of a request grow with its answer. The answer is left through `leaving` where the limits of its key
 * have nothing left for it.
 */
export function allow(request: ModelRequest, leaving: AbortController, settlements: Settlements): AnswerAllowance {
  const { hold, demanded } = request;
  if (hold === undefined || !mayGrow(request)) return { bound: undefined, spent: () => undefined };
  let limit: string | undefined;
  const onSpent = (by: string): void => {
    if (request.isOver || leaving.signal.aborted) return;
    limit = by;
    leaving.abort(new Fault("insufficient_quota", { message: "The key of this request has no tokens left." }));
  };
  const holder = {
    hold,
    grew: (grown: typeof hold) => {
      holder.hold = grown;
      request.grew(grown);
    },
  };
  const { promptTokens = 0 } = demanded ?? {};
  return { bound: new GrowingHold({ holder, promptTokens, settlements, onSpent }), spent: () => limit };
}
