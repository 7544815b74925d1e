import type { NewTerms } from "#shared/keys/key-change.ts";
import { keyLimits, type KeyLimits } from "#shared/keys/key-limits.ts";
import type { NamedTerms } from "./admin-schemas.ts";

type Limits = Pick<NamedTerms, "rpm" | "tpm" | "concurrency" | "budget">;

/** Returns the limits that a request sets, null included. Leaves out the limits that it does not name. */
export function namedLimits({ rpm, tpm, concurrency, budget }: Limits): NonNullable<NewTerms["limits"]> {
  return {
    ...(rpm === undefined ? {} : { requestsPerMinute: rpm }),
    ...(tpm === undefined ? {} : { tokensPerMinute: tpm }),
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(budget === undefined ? {} : { budget }),
  };
}

/** Limits for a new key; null means no limit. */
export function firstLimits(terms: Limits): KeyLimits {
  const set = Object.entries(namedLimits(terms)).filter(([, limit]) => limit !== null);
  return keyLimits.parse(Object.fromEntries(set));
}
