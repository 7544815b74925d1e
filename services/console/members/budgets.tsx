import type { Used } from "#shared/admin/member-operations.ts";
import { moneyText } from "#shared/money/money.ts";
import { currency } from "../currency.ts";
import { shortNumber } from "../quantity.ts";
import { Gauge, None } from "../values.tsx";

/** The budgets of a key, a person or a team, each with the part that is used. */
export function Budgets({ of }: { readonly of: readonly Used[] }) {
  if (of.length === 0) return <None text="no budget" />;
  return of.map(({ unit, per, used, whole }) => {
    const [part, all] = unit === "tokens" ? [used, whole].map(shortNumber) : [used, whole].map(money);
    const what = unit === "tokens" ? "tokens used" : "used";
    return (
      <div key={unit}>
        <Gauge part={used} whole={whole} text={`${part} of ${all} a ${per}`} what={what} />
      </div>
    );
  });
}

/** Returns an amount of millionths with the currency of the site. */
export function money(millionths: number): string {
  return moneyText(millionths, currency.value);
}
