import { onOneLine } from "../../../services/cli/text/on-one-line.ts";

/** Rows under their headings in Markdown; those named in `right` end at one place. */
export function markdownTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  { right = [] }: { readonly right?: readonly string[] } = {},
): string {
  const rule = headings.map((heading) => (right.includes(heading) ? "--:" : ":--"));
  return [headings, rule, ...rows.map((cells) => cells.map(escapedCell))]
    .map((cells) => `| ${cells.join(" | ")} |\n`)
    .join("");
}

/** What others wrote, as text and not as markup. */
export function escapedCell(text: string): string {
  return onOneLine(text)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replace(/[\\|`]/g, "\\$&");
}
