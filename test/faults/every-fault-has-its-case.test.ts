import { expect, test } from "vitest";
import { rowsPromised } from "../architecture/promises.ts";
import { faultRows, unasserted } from "./fault-rows.ts";

const range = (first: number, last: number): number[] =>
  Array.from({ length: last - first + 1 }, (_, place) => first + place);
const everyRow = [...range(1, 44), ...range(56, 60), ...range(70, 92)];
const phases = 6;
const harmed = ["machine", "gateway", "NATS", "Redis"];

test("every row of the fault table has its case, or a reason why not", () => {
  const named = new Set([...faultRows.flatMap(({ rows }) => rows), ...rowsPromised("fault")]);
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
