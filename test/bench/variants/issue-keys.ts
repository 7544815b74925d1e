import type { KeyLimits } from "#shared/keys/key-limits.ts";
import { Operator } from "../../harness/operator.ts";

/** So high that they are asked at every request and refuse none. */
export const neverReached: KeyLimits = {
  requestsPerMinute: 1_000_000,
  tokensPerMinute: 1_000_000_000,
  concurrency: 10_000,
  budget: { tokens: 1_000_000_000_000, per: "day" },
};
const keyTtlMs = 86_400_000;

const atOnce = 200;

/** Keys for everything, all with these limits. */
export async function issueKeys(
  redisUrl: string,
  { limits, count = 1 }: { readonly limits: KeyLimits | "off"; readonly count?: number },
): Promise<readonly string[]> {
  await using operator = await Operator.on({ redisUrl });
  const terms = { name: "bench", scopes: ["*"], ttlMs: keyTtlMs, ...(limits === "off" ? {} : { limits }) };
  const keys: string[] = [];
  while (keys.length < count) {
    const next = Math.min(atOnce, count - keys.length);
    const issued = await Promise.all(Array.from({ length: next }, () => operator.issue(terms)));
    keys.push(...issued.map(({ token }) => token.reveal()));
  }
  return keys;
}
