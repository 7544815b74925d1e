/** A time as people read it and RFC 3339 allows it, to the second: `2026-01-31 09:30:00Z`. */
export function utcTime(time: number | string): string {
  return new Date(time).toISOString().replace("T", " ").replace(/\.\d+/, "");
}
