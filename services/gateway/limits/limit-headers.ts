import type { Allowance, Standing } from "./limits.ts";
import { shortDuration } from "./short-duration.ts";

/** Returns the rate-limit status of a key as OpenAI's headers. A limit that the key does not have gets no header. */
export function limitHeaders(standing: Standing): Readonly<Record<string, string>> {
  const lines = limitLines(standing);
  const headers: Record<string, string> = {};
  for (let at = 0; at + 1 < lines.length; at += 2) headers[lines[at] ?? ""] = lines[at + 1] ?? "";
  return headers;
}

/** Returns the same headers as the flat list that Node accepts: a name, its value, the next name. */
export function limitLines({ requests, tokens }: Standing): string[] {
  const lines: string[] = [];
  if (requests !== undefined) tell(lines, names.requests, requests);
  if (tokens !== undefined) tell(lines, names.tokens, tokens);
  return lines;
}

interface Names {
  readonly limit: string;
  readonly remaining: string;
  readonly reset: string;
}

/** The names are literals rather than composed, since every answer has them. */
const names: Readonly<Record<"requests" | "tokens", Names>> = {
  requests: {
    limit: "x-ratelimit-limit-requests",
    remaining: "x-ratelimit-remaining-requests",
    reset: "x-ratelimit-reset-requests",
  },
  tokens: {
    limit: "x-ratelimit-limit-tokens",
    remaining: "x-ratelimit-remaining-tokens",
    reset: "x-ratelimit-reset-tokens",
  },
};

function tell(lines: string[], { limit, remaining, reset }: Names, allowance: Allowance): void {
  lines.push(limit, String(allowance.limit), remaining, String(allowance.remaining));
  lines.push(reset, shortDuration(allowance.resetMs));
}
