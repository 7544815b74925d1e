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

/** A key for everything, with these limits. */
export async function issueKey(redisUrl: string, limits: KeyLimits | "off"): Promise<string> {
  await using operator = await Operator.on({ redisUrl });
  const terms = limits === "off" ? {} : { limits };
  const { token } = await operator.issue({ name: "bench", scopes: ["*"], ttlMs: keyTtlMs, ...terms });
  return token.reveal();
}
