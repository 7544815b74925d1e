import type { Book } from "#shared/records/book.ts";
import { sleep, type Clock } from "#shared/process/clock.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import type { Fault } from "#shared/fault/fault.ts";
import {
  noSeat,
  type Admission,
  type Demand,
  type Reservation,
  type Limits,
  type LimitStatus,
} from "../limits/limits.ts";
import { type EarlyLimits, limitFault } from "./limit-responses.ts";

/**
 * The wait before a second try for a seat. A request that has just ended at another gateway, or whose client has just
 * left, may give its seat back a moment later.
 */
export const seatAgainMs = 150;

interface AdmitParts {
  readonly limits: Limits;
  readonly early?: Pick<EarlyLimits, "note"> | undefined;
  readonly clock: Clock;
  /** The currency of the site, for refusals. */
  readonly prices?: { readonly currency?: string | undefined } | undefined;
}

/** The decision of its books on a request: what it holds from then on, or the fault that names the limit. */
export interface Decision {
  readonly limitStatus: LimitStatus;
  readonly reservation?: Reservation | undefined;
  readonly fault: Fault | undefined;
  /** The limit that refused the request. */
  readonly by?: string | undefined;
}

const unlimited: Decision = { limitStatus: {}, fault: undefined };

/** A request asks this of its books. A count of tokens runs no model, and takes no seat. */
export type AskedLimits = Omit<Demand, "books">;

/** Asks for admission of a request to all of its books. */
export async function askLimits(
  all: readonly Book[],
  asked: AskedLimits,
  signal: AbortSignal,
  { limits, early, clock, prices }: AdmitParts,
): Promise<Decision> {
  const isCount = asked.seat === noSeat;
  const books = isCount ? all.filter(countsRequests) : all;
  if (books.length === 0) return unlimited;
  const demand = { books, ...asked };
  let admission = await limits.admit(demand);
  if (isRetryable(admission)) {
    await sleep(clock, seatAgainMs, signal);
    admission = await limits.admit({ ...demand, seat: newToken() });
  }
  const { limitStatus } = admission;
  if (admission.outcome === "admitted")
    return { limitStatus, reservation: isCount ? undefined : admission.reservation, fault: undefined };
  early?.note(admission);
  return { limitStatus, fault: limitFault(admission, demand, prices?.currency), by: admission.by };
}

/** True for a book that a count of tokens is charged to. */
export function countsRequests({ limits }: Book): boolean {
  return limits.requestsPerMinute !== undefined;
}

function isRetryable(admission: Admission): boolean {
  return admission.outcome === "refused" && admission.by === "concurrency";
}
