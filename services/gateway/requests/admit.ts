import { sleep, type Clock } from "#shared/process/clock.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import type { KeyRecord } from "#shared/records/key-record.ts";
import type { Fault } from "#shared/fault/fault.ts";
import { noSeat, type Admission, type Demand, type Hold, type Limits, type LimitStatus } from "../limits/limits.ts";
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
}

/** The decision of a key's limits on a request: what it holds from then on, or the fault that names the limit. */
export interface Decision {
  readonly limitStatus: LimitStatus;
  readonly hold?: Hold | undefined;
  readonly fault: Fault | undefined;
  /** The limit that refused the request. */
  readonly by?: string | undefined;
}

const unlimited: Decision = { limitStatus: {}, fault: undefined };

/** The prompt of a request, and what it may use in all. */
type Sized = Pick<Demand, "tokens" | "promptTokens">;

/** Asks for admission of a request under the limits of its key. */
export function admitRequest(key: KeyRecord, sized: Sized, signal: AbortSignal, parts: AdmitParts): Promise<Decision> {
  return ask(key, { ...sized, seat: newToken() }, signal, parts);
}

/** Asks for admission of a count of tokens, which runs no model. */
export async function admitCount(key: KeyRecord, signal: AbortSignal, parts: AdmitParts): Promise<Decision> {
  if (key.limits?.requestsPerMinute === undefined) return unlimited;
  return ask(key, { tokens: 0, seat: noSeat }, signal, parts);
}

async function ask(
  { id: keyId, limits }: KeyRecord,
  asked: Omit<Demand, "keyId" | "limits">,
  signal: AbortSignal,
  { limits: book, early, clock }: AdmitParts,
): Promise<Decision> {
  if (limits === undefined) return unlimited;
  const demand = { keyId, limits, ...asked };
  let admission = await book.admit(demand);
  if (isRetryable(admission)) {
    await sleep(clock, seatAgainMs, signal);
    admission = await book.admit({ ...demand, seat: newToken() });
  }
  const { limitStatus } = admission;
  if (admission.outcome === "admitted")
    return { limitStatus, hold: demand.seat === noSeat ? undefined : admission.hold, fault: undefined };
  early?.note(limits, admission);
  return { limitStatus, fault: limitFault(admission, demand), by: admission.by };
}

function isRetryable(admission: Admission): boolean {
  return admission.outcome === "refused" && admission.by === "concurrency";
}
