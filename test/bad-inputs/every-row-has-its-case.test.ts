import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { sections } from "./sections.ts";

const tests = join(import.meta.dirname, "..");
const everyRow = Array.from({ length: 225 }, (_, place) => place + 1);

test("the sections have every row of the list once", () => {
  const rows = sections.flatMap(({ first, last }) => everyRow.filter((row) => first <= row && row <= last));
  expect(rows.toSorted((a, b) => a - b)).toEqual(everyRow);
});

describe.each(sections)("$title", ({ title, first, last, cases, elsewhere, unasserted }) => {
  const tested = [...cases, ...elsewhere].flatMap(({ rows }) => rows);
  const reasons = new Map(unasserted.map(({ row, because }) => [row, because]));

  test(`every row from ${first} to ${last} has its case, or a reason why not`, () => {
    const named = new Set([...tested, ...reasons.keys()]);
    expect(everyRow.filter((row) => first <= row && row <= last && !named.has(row))).toEqual([]);
    expect([...named].filter((row) => row < first || row > last)).toEqual([]);
    for (const [row, because] of reasons) console.log(`Row ${row} of ${title} is not asserted: ${because}.`);
  });

  test("no two cases have one name", () => {
    const names = cases.map(({ rows, what }) => `${rows.join(", ")}: ${what}`);
    expect(names.filter((name, place) => names.indexOf(name) !== place)).toEqual([]);
  });

  test("a row tested elsewhere is", () => {
    for (const { file, name } of elsewhere) expect(sourceOf(file)).toContain(name);
  });
});

/** The test of this name, or the contract that several run. */
function sourceOf(file: string): string {
  return readFileSync(join(tests, file.endsWith(".contract") ? `${file}.ts` : `${file}.test.ts`), "utf8");
}
