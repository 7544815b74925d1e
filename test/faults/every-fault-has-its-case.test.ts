import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { elsewhere, faultRows, unasserted } from "./fault-rows.ts";

const tests = join(import.meta.dirname, "..");
const range = (first: number, last: number): number[] =>
  Array.from({ length: last - first + 1 }, (_, place) => first + place);
const everyRow = [...range(1, 44), ...range(56, 60), ...range(70, 92)];
const phases = 6;
const harmed = ["machine", "gateway", "NATS", "Redis"];

test("every row of the fault table has its case, or a reason why not", () => {
  const named = new Set([...faultRows, ...elsewhere].flatMap(({ rows }) => rows));
  expect(everyRow.filter((row) => !named.has(row) && !unasserted.has(row))).toEqual([]);
  expect([...named, ...unasserted.keys()].filter((row) => !everyRow.includes(row))).toEqual([]);
  for (const [row, because] of unasserted) console.log(`Row ${row} of the fault table is not asserted: ${because}.`);
});

test("killing and freezing have a case for each part at each phase", () => {
  const cells = faultRows.filter(({ rows }) => rows.length === 0).map(({ guarantee }) => guarantee);
  expect(cells).toHaveLength(2 * harmed.length * phases);
  for (const part of harmed) expect(cells.filter((cell) => cell.includes(part))).toHaveLength(2 * phases);
});

test("no two scenarios have one name", () => {
  const names = faultRows.map(({ rows, guarantee }) => `${rows.join(", ")}: ${guarantee}`);
  expect(names.filter((name, place) => names.indexOf(name) !== place)).toEqual([]);
});

test("a row tested elsewhere is", () => {
  for (const { file, name } of elsewhere) {
    const source = readFileSync(join(tests, `${file}.test.ts`), "utf8");
    const pieces = source.replaceAll(/\$\{[^}]*\}/g, "");
    expect([file, pieces.includes(name) || source.includes(name)]).toEqual([file, true]);
  }
});
