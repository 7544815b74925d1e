import { expect, test } from "vitest";
import { rowsPromised } from "../architecture/promises.ts";
import { sections } from "./sections.ts";

const everyRow = Array.from({ length: 226 }, (_, place) => place + 1);
/** Rows that no test asserts, and why. */
const unasserted: ReadonlyMap<number, string> = new Map([
  [98, "it is about time, and no test asserts a time"],
  [115, "it speaks of time; test/bench/loop-holds.ts measures it"],
  [142, "a key is the only holder of limits: there are no tenants with several"],
]);

test("every row of the list of bad inputs has its case, a test elsewhere, or a reason why not", () => {
  const cases = sections.flatMap((section) => section.cases.flatMap(({ rows }) => rows));
  const named = new Set([...cases, ...rowsPromised("input"), ...unasserted.keys()]);
  expect([...named].toSorted((a, b) => a - b)).toEqual(everyRow);
  for (const [row, because] of unasserted) console.log(`Row ${row} of the bad inputs is not asserted: ${because}.`);
});

test.each(sections)("no two cases of $title have one name", ({ cases }) => {
  const names = cases.map(({ rows, what }) => `${rows.join(", ")}: ${what}`);
  expect(names.filter((name, place) => names.indexOf(name) !== place)).toEqual([]);
});
