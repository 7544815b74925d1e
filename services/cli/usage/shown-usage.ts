import type { UsageCounts } from "#shared/usage/usage-row.ts";
import { meansOf } from "./sum-usage.ts";

/**
 * Returns usage counts for JSON output, with the field names of the admin API. The means are null when there was no
 * request.
 */
export function shownUsage(counts: UsageCounts): object {
  const means = meansOf(counts);
  return {
    requests: counts.requests,
    failed: counts.failed,
    prompt_tokens: counts.promptTokens,
    completion_tokens: counts.completionTokens,
    answered: counts.answered,
    first_token_ms: counts.firstTokenMs,
    duration_ms: counts.durationMs,
    mean_first_token_ms: rounded(means.firstTokenMs),
    mean_duration_ms: rounded(means.durationMs),
  };
}

function rounded(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms);
}
