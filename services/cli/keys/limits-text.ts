import type { ShownKey } from "#shared/keys/shown-key.ts";
import { countText } from "../text/count.ts";
import { budgetText } from "../text/token-budget.ts";

/** Formats a key's limits in short, and leaves out missing ones: `60 rpm, 100k tpm, 4 at once, 1M/day`. */
export function limitsText({ rpm, tpm, concurrency, budget }: ShownKey): string {
  return [
    rpm === null ? [] : `${countText(rpm)} rpm`,
    tpm === null ? [] : `${countText(tpm)} tpm`,
    concurrency === null ? [] : `${countText(concurrency)} at once`,
    budget === null ? [] : budgetText(budget),
  ]
    .flat()
    .join(", ");
}
