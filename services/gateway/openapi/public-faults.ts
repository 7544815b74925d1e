import { type FaultCode, faultEntry, isFaultCode } from "#shared/fault/fault.ts";
import type { RefusedAs } from "../apis/description.ts";
import { messageStatus } from "../apis/messages/message-faults.ts";
import { wordsOf } from "./words.ts";

/** The groups of faults that clients see, by the requests that can meet them. `words.md` has the cause of each. */
const groups = [
  "all",
  "keys",
  "bodies",
  "decimals",
  "tools",
  "machines",
  "models",
  "jobs",
  "repeats",
  "others",
] as const;
type Group = (typeof groups)[number];

function wordsOfFaults(...names: readonly Group[]) {
  return names
    .flatMap((group) => wordsOf(`Errors: ${group}`))
    .map(({ name, meaning }) => {
      if (!isFaultCode(name)) throw new Error(`words.md describes ${name}, which is no code of faultCodes.`);
      return { name, meaning };
    });
}

/** Returns the codes of some groups of faults. */
export function faultsOf(...names: readonly Group[]): readonly FaultCode[] {
  return wordsOfFaults(...names).map(({ name }) => name);
}

export const publicCodes = faultsOf(...groups);

const jobs = ["machines", "models", "jobs"] as const;
const ofStored = ["response_not_found", "backend_unavailable", "rate_limit_requests", "server_is_overloaded"] as const;
/** The faults of operations, besides those of all requests, of keys and of bodies. */
export const refusalsAs: Readonly<Record<RefusedAs, readonly FaultCode[]>> = {
  nothing: [],
  machines: faultsOf("machines"),
  count: faultsOf("machines", "models", "decimals", "tools"),
  job: faultsOf(...jobs),
  settings: faultsOf(...jobs, "decimals"),
  media: [...faultsOf(...jobs, "decimals"), "insufficient_permissions"],
  chat: faultsOf(...jobs, "decimals", "tools", "repeats"),
  stored: ofStored,
};

/**
 * Returns every error that a client of the public API may get, sorted by status. `retried` is true if official clients
 * retry the request automatically.
 */
export function faultDescriptions() {
  const descriptions = wordsOfFaults(...groups).map(({ name, meaning }) => {
    const { status, type, retry, retryAfterSeconds } = faultEntry(name);
    const messages_status = anthropicStatus(name);
    return {
      status,
      ...(messages_status === status ? {} : { messages_status }),
      type,
      code: publicCode(name),
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
export const anthropicStatus = (code: FaultCode): number => messageStatus({ code });

/** Groups fault codes by their HTTP status in one of the outer APIs. */
export function byStatus(codes: readonly FaultCode[], statusOf: (code: FaultCode) => number) {
  return Object.entries(Object.groupBy(codes, statusOf)).map(([status, group = []]) => [status, group] as const);
}

/** Returns a sentence that lists the codes of one status. */
export function refusedWith(codes: readonly FaultCode[]): string {
  const names = new Set(codes.map((code) => publicCode(code) ?? "null"));
  return `Refused, with the code ${[...names].join(" or ")}.`;
}
