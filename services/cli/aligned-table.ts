/** Rows under their headings, each column as wide as its widest cell. For people; programs ask for JSON. */
export function alignedTable(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => (row[column] ?? "").length)),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  return [headings, ...rows].map((cells) => `${line(cells)}\n`).join("");
}
