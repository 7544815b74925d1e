import { z } from "zod";
import type { AuditEntry } from "#shared/keys/audit-entry.ts";
import { tokenBudget } from "#shared/keys/key-limits.ts";
import type { KeyKind } from "#shared/keys/key-token.ts";
import { budgetText } from "../text/token-budget.ts";
import { countText } from "../text/count.ts";
import { utcTime } from "../text/utc-time.ts";

const usualKind: KeyKind = "model";
const fields = z.record(z.string(), z.unknown());

/** Formats the details of an audit entry in short. Of a change, shows only the fields that differ from before. */
export function detailText(detail: AuditEntry["detail"]): string {
  if (detail === undefined) return "";
  const { was, ...now } = detail;
  const before = fields.safeParse(was);
  const said = Object.entries(now).map(([field, value]) => {
    if (before.success) {
      const [from, to] = [valueText(before.data[field]), valueText(value)];
      return from === to ? "" : `${labelOf(field)} ${from} → ${to}`;
    }
    if (value === null || value === usualKind) return "";
    const from = was === undefined ? "" : ` (was ${valueText(was)})`;
    return `${labelOf(field)} ${valueText(value)}${from}`;
  });
  return said.filter((each) => each !== "").join(", ");
}

function labelOf(field: string): string {
  return field === "expires_at" ? "expires" : field.replaceAll("_", " ");
}

const shapes = z.union([
  z.null().transform(() => "none"),
  z.iso.datetime().transform(utcTime),
  z.number().transform(countText),
  z.array(z.string()).transform((items) => items.join(" ")),
  tokenBudget.transform(budgetText),
]);

function valueText(value: unknown): string {
  const known = shapes.safeParse(value);
  if (known.success) return known.data;
  return typeof value === "string" ? value : JSON.stringify(value);
}
