import { expect, test } from "vitest";
import { nameParts } from "../../../services/console/quantity.ts";
import { findRows, pageAt, sortRows } from "../../../services/console/table-rows.ts";

interface Row {
  readonly name: string;
  readonly runtime: string | null;
  readonly slots: number;
}

const rows: readonly Row[] = [
  { name: "gpu-10", runtime: "vLLM", slots: 4 },
  { name: "gpu-9", runtime: null, slots: 12 },
  { name: "attic", runtime: "Ollama", slots: 1 },
];
const texts = [({ name }: Row) => name, ({ runtime }: Row) => runtime, ({ slots }: Row) => slots];
const namesOf = (found: readonly Row[]) => found.map(({ name }) => name);

test("a table finds the rows that have a part of every word, whatever its capitals", () => {
  expect(namesOf(findRows(rows, texts, "GPU"))).toEqual(["gpu-10", "gpu-9"]);
  expect(namesOf(findRows(rows, texts, " vll  gpu "))).toEqual(["gpu-10"]);
  expect(findRows(rows, texts, "attic vllm")).toEqual([]);
});

test("a table sorts names as people do, numbers by their size, and rows without a value last", () => {
  expect(namesOf(sortRows(rows, ({ name }) => name, false))).toEqual(["attic", "gpu-9", "gpu-10"]);
  expect(namesOf(sortRows(rows, ({ slots }) => slots, true))).toEqual(["gpu-9", "gpu-10", "attic"]);
  for (const isDescending of [false, true])
    expect(namesOf(sortRows(rows, ({ runtime }) => runtime, isDescending)).at(-1)).toBe("gpu-9");
});

test("a long list has pages of 50 rows, and a page that is not there shows the nearest one", () => {
  expect(pageAt(500, 2)).toEqual({ page: 2, pages: 10, from: 50, to: 100 });
  expect(pageAt(61, 9)).toEqual({ page: 2, pages: 2, from: 50, to: 61 });
  for (const asked of [0, -3, Number.NaN]) expect(pageAt(500, asked)).toMatchObject({ page: 1, from: 0, to: 50 });
  expect(pageAt(0, 1)).toEqual({ page: 1, pages: 1, from: 0, to: 0 });
});

test("a long name is cut in its middle, so that its end stays in sight, and no character is cut in two", () => {
  expect(nameParts("hf.co/unsloth/Qwen3-Coder-30B:Q4_K_M")).toEqual(["hf.co/unsloth/Qwen3-Code", "r-30B:Q4_K_M"]);
  expect(nameParts("qwen3:8b")).toEqual(["qwen3:8b", ""]);
  expect(nameParts("🦙".repeat(25))).toEqual(["🦙".repeat(13), "🦙".repeat(12)]);
});
