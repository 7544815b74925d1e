import type { Allowance, Standing } from "./limits.ts";
import { shortDuration } from "./short-duration.ts";

/** How a key stands, in OpenAI's headers; nothing of a limit that it does not have. */
export function limitHeaders({ requests, tokens }: Standing): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  if (requests !== undefined) tell(headers, "requests", requests);
  if (tokens !== undefined) tell(headers, "tokens", tokens);
  return headers;
}

function tell(headers: Record<string, string>, what: "requests" | "tokens", allowance: Allowance): void {
  headers[`x-ratelimit-limit-${what}`] = String(allowance.limit);
  headers[`x-ratelimit-remaining-${what}`] = String(allowance.remaining);
  headers[`x-ratelimit-reset-${what}`] = shortDuration(allowance.resetMs);
}
