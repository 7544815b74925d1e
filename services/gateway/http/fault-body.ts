import { faultEntry } from "#shared/fault/fault-code.ts";
import type { Fault } from "#shared/fault/fault.ts";

/** OpenAI's error body. It always has these four keys. */
export interface FaultBody {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string | null;
  };
}

export function faultBody(fault: Fault): FaultBody {
  const { type, wire } = faultEntry(fault.code);
  const code = wire === undefined ? fault.code : wire;
  return { error: { message: fault.message, type, param: fault.param ?? null, code } };
}

/** Returns the headers that official clients read beside the body: how long to wait, and whether to retry at all. */
export function faultHeaders(fault: Fault): Record<string, string> {
  const { status, retry, retryAfterSeconds } = faultEntry(fault.code);
  const waitSeconds = fault.retryAfterSeconds ?? retryAfterSeconds;
  return {
    ...(waitSeconds === undefined ? {} : { "retry-after": String(waitSeconds) }),
    ...(retry === false ? { "x-should-retry": "false" } : {}),
    ...(status === 401 ? { "www-authenticate": "Bearer" } : {}),
  };
}
