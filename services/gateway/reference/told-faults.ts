import { faultEntry } from "#shared/fault/fault-code.ts";
import { faultMeanings, publicCodes } from "./fault-meanings.ts";
import { toldCode } from "./refusals.ts";

/** One row of the table of errors. */
export interface ToldFault {
  readonly status: number;
  readonly type: string;
  readonly code: string | null;
  readonly meaning: string;
  /** True if official clients retry the request automatically. */
  readonly retried: boolean;
  /** The `retry-after` time, for errors where it is always the same. */
  readonly retry_after_seconds?: number;
}

/** Returns every error that a client of the public API may get, sorted by status. */
export function toldFaults(): ToldFault[] {
  const told = publicCodes.map((name): ToldFault => {
    const { status, type, retry, retryAfterSeconds } = faultEntry(name);
    return {
      status,
      type,
      code: toldCode(name),
      meaning: faultMeanings[name],
      retried: retry !== false && isRetried(status),
      ...(retryAfterSeconds === undefined ? {} : { retry_after_seconds: retryAfterSeconds }),
    };
  });
  return told.sort((a, b) => a.status - b.status);
}

/** True if official clients retry this status by default, without an `x-should-retry` header. */
function isRetried(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500;
}
