/** The troubles of a site, in words. Pure. */
const soonMs = 14 * 86_400_000;

export function isEndingSoon(expiresAt: string, nowMs: number): boolean {
  return Date.parse(expiresAt) - nowMs < soonMs;
}
