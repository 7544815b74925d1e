import { amountText } from "../money/money.ts";

/** Formats the values of an entry of the trail. The browser loads this file. */
interface TrailFormats {
  readonly count: (count: number) => string;
  readonly time: (iso: string) => string;
  /** Returns the words for a field, if it has some of its own. */
  readonly label?: (field: string) => string | undefined;
}

/** Formats the details of an audit entry in short. Of a change, shows only the fields that differ from before. */
export function detailText(
  detail: Readonly<Record<string, unknown>> | null | undefined,
  formats: TrailFormats,
): string {
  const { was, ...now } = detail ?? {};
  const label = (field: string): string =>
    formats.label?.(field) ?? (field === "expires_at" ? "expires" : field.replaceAll("_", " "));
  const text = (value: unknown): string => valueText(value, formats);
  const fields = Object.entries(now);
  if (was === undefined) {
    const given = fields.filter(([, value]) => value !== null && value !== "model");
    return given.map(([field, value]) => `${label(field)} ${text(value)}`).join(", ");
  }
  if (typeof was === "string" && fields.length === 0) return `was ${text(was)}`;
  const before = new Map(typeof was === "string" ? fields.map(([field]) => [field, was]) : Object.entries(Object(was)));
  const changed = [...new Set([...before.keys(), ...Object.keys(now)])].filter(
    (field) => text(before.get(field)) !== text(now[field]),
  );
  return changed.map((field) => `${label(field)} ${text(before.get(field))} → ${text(now[field])}`).join(", ");
}

const isoTime = /^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/;

function valueText(value: unknown, formats: TrailFormats): string {
  if (value === null || value === undefined) return "none";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return formats.count(value);
  if (typeof value === "string") return isoTime.test(value) ? formats.time(value) : value;
  if (Array.isArray(value)) return value.join(" ") || "none";
  const { tokens, millionths, per } = Object(value) as Readonly<Record<string, unknown>>;
  if (typeof tokens === "number" && typeof per === "string") return `${formats.count(tokens)}/${per}`;
  if (typeof millionths === "number" && typeof per === "string") return `${amountText(millionths)}/${per}`;
  return JSON.stringify(value);
}
