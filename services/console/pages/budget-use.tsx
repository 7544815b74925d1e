/** The last use of keys, and the used part of the budgets of keys, teams and people. */
import type { AnswerTo } from "#shared/admin/admin-call.ts";
import { type SomeTerms, type termRows, termText } from "#shared/admin/key-terms.ts";
import { dayMs } from "#shared/process/clock.ts";
import type { ShownKey } from "#shared/records/shown-key.ts";
import { useAnswer } from "../admin-api.ts";
import { currency, shortAmount } from "../currency.ts";
import type { Fact } from "../parts.tsx";
import { daysAgo, numberText, shortNumber } from "../quantity.ts";
import type { Column } from "../table.tsx";
import { Gauge, None } from "../values.tsx";

/** The use of keys, teams or people by their ids. Undefined while it is not known. */
type Uses = ReadonlyMap<string, AnswerTo<"GET /usage/keys">["data"][number]> | undefined;

export function useUses(by: "key" | "team" | "person"): Uses {
  // Gateways of 0.2.0 know keys alone, and no `by`.
  const { answer } = useAnswer("GET /usage/keys", { query: { by: by === "key" ? undefined : by } });
  return answer && new Map(answer.data.map((use) => [use.key, use]));
}

interface UseProps {
  readonly id: string;
  readonly uses: Uses;
}

/** The day on which a key was used last. The store has days, and no times. */
export function LastUsed({ id, uses, createdAt }: UseProps & { readonly createdAt: ShownKey["created_at"] }) {
  if (uses === undefined) return <None />;
  const day = uses.get(id)?.last_day;
  const isNew = Date.now() - Date.parse(createdAt) < 31 * dayMs;
  if (day === undefined) return <None text={isNew ? "never" : "not in 31 days"} />;
  return <span title={`On ${day} (UTC)`}>{daysAgo(day, Date.now())}</span>;
}

const budgetNames = ["budget", "spend"] as const;
type BudgetName = (typeof budgetNames)[number];
type Budgets = Pick<SomeTerms, BudgetName>;

/** Returns a budget and its used part; undefined without one. */
function useIn(name: BudgetName, of: Budgets, { id, uses }: UseProps) {
  const given = of[name];
  if (!given) return undefined;
  const [whole, unit] = "tokens" in given ? [given.tokens, "tokens" as const] : [given.millionths, "cost" as const];
  return { whole, unit, per: given.per, used: uses?.get(id)?.[`${unit}_of_${given.per}`] ?? 0 };
}

/** A budget with a bar of its used part. */
export function BudgetUse({ name, of, ...given }: UseProps & { readonly name: BudgetName; readonly of: Budgets }) {
  const use = useIn(name, of, given);
  if (use === undefined) return null;
  const { used, whole, unit, per } = use;
  const text = unit === "tokens" ? shortNumber : shortAmount;
  const all = `${text(whole)}${unit === "tokens" ? "" : ` ${currency.value}`} a ${per}`;
  if (given.uses === undefined) return <>{all}</>;
  return <Gauge part={used} whole={whole} text={`${text(used)} of ${all}`} what={`used, in ${unit}`} />;
}

/** The columns of those budgets that some of the rows have. They sort by the used part. */
export function budgetColumns<Row extends Budgets>(
  rows: readonly Row[] = [],
  idOf: (row: Row) => string,
  uses: Uses,
): readonly Column<Row>[] {
  const given = budgetNames.filter((name) => rows.some((row) => row[name]));
  return given.map((name) => [
    name,
    (row) => row[name] && <BudgetUse name={name} of={row} id={idOf(row)} uses={uses} />,
    "",
    (row) => {
      const use = useIn(name, row, { id: idOf(row), uses });
      return use === undefined ? null : use.used / use.whole;
    },
  ]);
}

/** Returns these terms as facts, with bars for budgets. */
export function termFacts(rows: typeof termRows, of: SomeTerms, use: UseProps): readonly Fact[] {
  return rows.map((row) => {
    const [name, { title, ...about }] = row;
    const usual = about.kind === "mark" ? (about.usual ? "yes" : "no") : about.without;
    const budget = budgetNames.find((each) => each === name);
    if (budget !== undefined && of[budget]) return [title, <BudgetUse name={budget} of={of} {...use} />];
    return [title, termText(row, of, numberText) ?? usual];
  });
}
