import type { AnswerTo } from "#shared/admin/admin-call.ts";
import { dayMs } from "#shared/process/clock.ts";
import type { ShownKey } from "#shared/records/shown-key.ts";
import { useAnswer } from "../admin-api.ts";
import { daysAgo, shortNumber } from "../quantity.ts";
import { Gauge, None } from "../values.tsx";

/** The use of keys by their ids. Undefined while it is not known. */
export type KeyUses = ReadonlyMap<string, AnswerTo<"GET /usage/keys">["data"][number]> | undefined;

export function useKeyUses(): KeyUses {
  const { answer } = useAnswer("GET /usage/keys", {});
  return answer && new Map(answer.data.map((use) => [use.key, use]));
}

/** The day on which a key was used last. The store has days, and no times. */
export function LastUsed({ shown, uses }: { readonly shown: ShownKey; readonly uses: KeyUses }) {
  if (uses === undefined) return <None />;
  const day = uses.get(shown.id)?.last_day;
  const isNew = Date.now() - Date.parse(shown.created_at) < 31 * dayMs;
  if (day === undefined) return <None text={isNew ? "never" : "not in 31 days"} />;
  return <span title={`On ${day} (UTC)`}>{daysAgo(day, Date.now())}</span>;
}

/** The tokens of a key's budget that are used. */
export function BudgetUsed({ shown: { id, budget }, uses }: { readonly shown: ShownKey; readonly uses: KeyUses }) {
  if (budget === null) return <None text="none" />;
  const all = `${shortNumber(budget.tokens)} a ${budget.per}`;
  if (uses === undefined) return <>{all}</>;
  const used = usedOf({ id, budget }, uses);
  return <Gauge part={used} whole={budget.tokens} text={`${shortNumber(used)} of ${all}`} what="used, in tokens" />;
}

/** Returns the tokens that count towards the budget of a key. */
export function usedOf({ id, budget }: Pick<ShownKey, "id" | "budget">, uses: KeyUses): number {
  return uses?.get(id)?.[budget?.per === "day" ? "tokens_of_day" : "tokens_of_month"] ?? 0;
}
