import { type FaultCode, faultEntry, isFaultCode } from "#shared/fault/fault.ts";
import type { RefusedAs } from "../apis/description.ts";
import { messageStatus } from "../apis/messages/message-faults.ts";
import { wordsOf } from "./words.ts";

/** The faults that clients see and their causes: all of them, or a group of words.md. */
function causesOf(group = "") {
  return wordsOf(`Errors: ${group}`).map(({ name: code, meaning }) => {
    if (!isFaultCode(code)) throw new Error(`words.md describes ${code}, which is no code of faultCodes.`);
    return { code, meaning };
  });
}

/** Returns the codes of some groups of faults. */
export function faultsOf(...groups: readonly string[]): readonly FaultCode[] {
  return groups.flatMap(causesOf).map(({ code }) => code);
}

export const publicCodes = faultsOf("");

const jobs = faultsOf("machines", "models", "jobs");
/** The faults of operations, besides those of all requests, of keys and of bodies. */
export const refusalsAs: Readonly<Record<RefusedAs, readonly FaultCode[]>> = {
  nothing: [],
  machines: faultsOf("machines"),
  count: faultsOf("machines", "models", "decimals", "tools"),
  job: jobs,
  settings: [...jobs, ...faultsOf("decimals")],
  media: [...jobs, ...faultsOf("decimals"), "insufficient_permissions"],
  chat: [...jobs, ...faultsOf("decimals", "tools")],
  stored: ["response_not_found", "backend_unavailable", "rate_limit_requests", "server_is_overloaded"],
};

/**
 * Returns every error that a client of the public API may get, sorted by status. `retried` is true if official clients
 * retry the request automatically.
 */
export function faultDescriptions() {
  const descriptions = causesOf().map(({ code, meaning }) => {
    const { status, type, retry, retryAfterSeconds } = faultEntry(code);
    const messages_status = messageStatus({ code });
    return {
      status,
      ...(messages_status === status ? {} : { messages_status }),
      type,
      code: publicCode(code),
      meaning,
      retried: retry !== false && (status === 408 || status === 409 || status === 429 || status >= 500),
      ...(retryAfterSeconds === undefined ? {} : { retry_after_seconds: retryAfterSeconds }),
    };
  });
  return descriptions.sort((a, b) => a.status - b.status);
}

/** Returns the code of a fault as clients see it. Null where OpenAI has no code. */
export function publicCode(code: FaultCode): string | null {
  const { wire = code } = faultEntry(code);
  return wire;
}

export const openAiStatus = (code: FaultCode): number => faultEntry(code).status;

/** Groups fault codes by their HTTP status in one of the outer APIs. */
export function byStatus(codes: readonly FaultCode[], statusOf: (code: FaultCode) => number) {
  return Object.entries(Object.groupBy(codes, statusOf)).map(([status, group = []]) => [status, group] as const);
}

/** Returns a sentence that lists the codes of one status. */
export function refusedWith(codes: readonly FaultCode[]): string {
  const names = new Set(codes.map((code) => publicCode(code) ?? "null"));
  return `Refused, with the code ${[...names].join(" or ")}.`;
}
