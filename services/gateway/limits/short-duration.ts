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
