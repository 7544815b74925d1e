import { faultEntry } from "#shared/fault/fault-code.ts";
import { faultMeanings, publicCodes } from "./fault-meanings.ts";
import { toldCode } from "./refusals.ts";

/** One line of the table of errors. */
export interface ToldFault {
  readonly status: number;
  readonly type: string;
  readonly code: string | null;
  readonly meaning: string;
  /** Whether official clients send the request again by themselves. */
  readonly retried: boolean;
  /** How long they are told to wait before, where it is always the same. */
  readonly retry_after_seconds?: number;
}

/** Every error that a caller of the public API may be told, by its status. */
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

/** What official clients take for worth another try unless they are told that it is not. */
function isRetried(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500;
}
