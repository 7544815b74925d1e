/** Rows as CSV. Pure. */
type Cell = string | number | null;

export function csvText(heads: readonly string[], rows: readonly (readonly Cell[])[]): string {
  return [heads, ...rows].map((row) => `${row.map(csvField).join(",")}\r\n`).join("");
}

/** Returns a field in quotes where it needs them. A spreadsheet takes a text that begins with = or + for a formula. */
function csvField(value: Cell): string {
  const text = String(value ?? "");
  const harmless = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
