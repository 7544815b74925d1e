/** Formats the values of an entry of the trail. The browser loads this file. */
interface TrailFormats {
  readonly count: (count: number) => string;
  readonly time: (iso: string) => string;
}

/** Formats the details of an audit entry in short. Of a change, shows only the fields that differ from before. */
export function detailText(
  detail: Readonly<Record<string, unknown>> | null | undefined,
  formats: TrailFormats,
): string {
  const { was, ...now } = detail ?? {};
  const before = new Map(Object.entries(Object(was)));
  const changes = Object.entries(now).map(([field, value]) => {
    const label = field === "expires_at" ? "expires" : field.replaceAll("_", " ");
    const text = valueText(value, formats);
    if (before.size > 0 && typeof was === "object") {
      const from = valueText(before.get(field), formats);
      return from === text ? "" : `${label} ${from} → ${text}`;
    }
    if (value === null || value === "model") return "";
    return `${label} ${text}${was === undefined ? "" : ` (was ${valueText(was, formats)})`}`;
  });
  return changes.filter((each) => each !== "").join(", ");
}

const isoTime = /^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/;

function valueText(value: unknown, formats: TrailFormats): string {
  if (value === null) return "none";
  if (typeof value === "number") return formats.count(value);
  if (typeof value === "string") return isoTime.test(value) ? formats.time(value) : value;
  if (Array.isArray(value)) return value.join(" ");
  const { tokens, per }: { readonly tokens?: unknown; readonly per?: unknown } = Object(value);
  if (typeof tokens === "number" && typeof per === "string") return `${formats.count(tokens)}/${per}`;
  return JSON.stringify(value) ?? "undefined";
}
