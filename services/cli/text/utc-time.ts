/** Formats a time to the second, readable and valid in RFC 3339: `2026-01-31 09:30:00Z`. */
export function utcTime(time: number | string): string {
  return new Date(time).toISOString().replace("T", " ").replace(/\.\d+/, "");
}
