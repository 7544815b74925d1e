/** The rows that a table shows: those that have the words, by a value of each, a page at a time. Pure. */

/** Returns the value by which a column sorts, and whose text is found. */
export type By<Row> = (row: Row) => string | number | null;

/** Returns the rows that have every word in their texts. Parts of words count, and capitals do not. */
export function findRows<Row>(rows: readonly Row[], texts: readonly By<Row>[], find: string): readonly Row[] {
  const words = find.toLowerCase().split(/\s+/);
  return rows.filter((row) => {
    const values = texts.map((by) => by(row)).filter((value) => typeof value === "string");
    const text = values.join("\n").toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** Returns the rows by a value of each. Rows without one come last. */
export function sortRows<Row>(rows: readonly Row[], by: By<Row>, isDescending: boolean): readonly Row[] {
  return rows.toSorted((first, second) => {
    const [one, other] = [by(first), by(second)];
    if (one === null || other === null) return Number(one === null) - Number(other === null);
    const order =
      typeof one === "number" && typeof other === "number" ? one - other : names.compare(String(one), String(other));
    return isDescending ? -order : order;
  });
}

/** Compares names as people do: `gpu-9` before `gpu-10`. */
const names = new Intl.Collator(undefined, { numeric: true });

export const pageRows = 50;

/** Returns the page that is asked for, or the nearest one, and the places of its rows. */
export function pageAt(count: number, asked: number) {
  const pages = Math.max(1, Math.ceil(count / pageRows));
  const page = Math.min(Math.max(1, Math.trunc(asked) || 1), pages);
  const from = (page - 1) * pageRows;
  return { page, pages, from, to: Math.min(count, from + pageRows) };
}
