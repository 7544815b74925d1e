import { displayWidth } from "./display-width.ts";
import { onOneLine } from "./on-one-line.ts";

/**
 * Formats rows under their headings, each column as wide as its widest cell. The columns in `right` are right-aligned,
 * for numbers. The table is for people; programs use `--json`.
 */
export function alignedTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  { right = [] }: { readonly right?: readonly string[] } = {},
): string {
  const lines = [headings, ...rows].map((cells) => cells.map(onOneLine));
  const widths = headings.map((_, column) => Math.max(...lines.map((cells) => displayWidth(cells[column] ?? ""))));
  const isRight = headings.map((heading) => right.includes(heading));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => {
        const room = " ".repeat((widths[column] ?? 0) - displayWidth(cell));
        return isRight[column] ? room + cell : cell + room;
      })
      .join("  ")
      .trimEnd();
  return lines.map((cells) => `${line(cells)}\n`).join("");
}
