import type { Allowance, Standing } from "./limits.ts";
import { shortDuration } from "./short-duration.ts";

/** How a key stands, in OpenAI's headers; nothing of a limit that it does not have. */
export function limitHeaders(standing: Standing): Readonly<Record<string, string>> {
  return { ...headersOf("requests", standing.requests), ...headersOf("tokens", standing.tokens) };
}

function headersOf(what: "requests" | "tokens", allowance: Allowance | undefined): Record<string, string> {
  if (allowance === undefined) return {};
  return {
    [`x-ratelimit-limit-${what}`]: String(allowance.limit),
    [`x-ratelimit-remaining-${what}`]: String(allowance.remaining),
    [`x-ratelimit-reset-${what}`]: shortDuration(allowance.resetMs),
  };
}
