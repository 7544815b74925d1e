import { Fault } from "#shared/fault/fault.ts";
import type { Admission, Allowance, Demand, Standing } from "./limits.ts";

type Refused = Extract<Admission, { outcome: "refused" }>;

/** The longest wait that a refusal tells a client. Official clients really sleep for that long. */
const retryAfterSecondsMax = 60;

/** Returns the fault for a request that its key's limits refuse. The message names the limit and when to try again. */
export function limitFault(
  { by, waitMs, standing }: Refused,
  { limits, tokens }: Pick<Demand, "limits" | "tokens">,
): Fault {
  const waitSeconds = Math.max(1, Math.ceil(waitMs / 1_000));
  const retryAfterSeconds = Math.min(waitSeconds, retryAfterSecondsMax);
  const again = `Try again in ${shortDuration(waitSeconds * 1_000)}`;
  switch (by) {
    case "requests":
      return new Fault("rate_limit_requests", {
        message: `This key may send ${counted(standing.requests?.limit, "request")} a minute, and has sent ${standing.requests?.limit === 1 ? "it" : "them"}. ${again}.`,
        retryAfterSeconds,
      });
    case "tokens":
      return new Fault("rate_limit_tokens", {
        message: `This key may use ${counted(standing.tokens?.limit, "token")} a minute and has ${standing.tokens?.remaining} left; this request may use ${tokens}. ${again}, or allow it a shorter answer with max_tokens.`,
        retryAfterSeconds,
      });
    case "concurrency":
      return new Fault("concurrency_limit_exceeded", {
        message: `This key may have ${counted(limits.concurrency, "request")} under way at once, and has. ${again}, when one may have ended.`,
        retryAfterSeconds,
      });
    case "budget_reserved":
      return new Fault("rate_limit_tokens", {
        message: `This key may use ${budgetOf(limits)}, and its requests under way have reserved what is left of them. ${again}, when some may have ended.`,
        retryAfterSeconds,
      });
    case "budget":
      return new Fault("insufficient_quota", {
        message: `This key may use ${budgetOf(limits)}, and has used them. It may use more ${renewalOf(limits)}, 00:00 UTC.`,
      });
  }
}

function budgetOf({ budget }: Demand["limits"]): string {
  return `${counted(budget?.tokens, "token")} a ${budget?.per}`;
}

function renewalOf({ budget }: Demand["limits"]): string {
  return budget?.per === "month" ? "from the first of next month" : "from tomorrow";
}

function counted(count: number | undefined, what: string): string {
  return count === 1 ? `1 ${what}` : `${count} ${what}s`;
}

/** Returns the rate-limit status of a key as OpenAI's headers. A limit that the key does not have gets no header. */
export function limitHeaders({ requests, tokens }: Standing): Readonly<Record<string, string>> {
  return { ...headersOf("requests", requests), ...headersOf("tokens", tokens) };
}

function headersOf(name: keyof Standing, allowance: Allowance | undefined): Record<string, string> {
  if (allowance === undefined) return {};
  return {
    [`x-ratelimit-limit-${name}`]: String(allowance.limit),
    [`x-ratelimit-remaining-${name}`]: String(allowance.remaining),
    [`x-ratelimit-reset-${name}`]: shortDuration(allowance.resetMs),
  };
}

/** Formats a duration as OpenAI does in headers: `20ms`, `1s`, `6m0s`, `1h0m0s`. Rounds up. */
export function shortDuration(ms: number): string {
  const wholeMs = Math.max(0, Math.ceil(ms));
  if (wholeMs > 0 && wholeMs < 1_000) return `${wholeMs}ms`;
  const seconds = Math.ceil(wholeMs / 1_000);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  if (minutes === 0) return `${seconds}s`;
  return hours === 0 ? `${minutes}m${seconds % 60}s` : `${hours}h${minutes % 60}m${seconds % 60}s`;
}
