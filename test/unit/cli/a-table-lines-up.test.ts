import { expect, test } from "vitest";
import { alignedTable, cutText } from "../../../services/cli/terminal/table-text.ts";
import { countText, fromNow } from "#shared/process/quantities.ts";

test("columns line up also where characters are two columns wide", () => {
  const rows = [
    ["李小龍", "1"],
    ["🙂", "20"],
    ["é", "300"],
    ["abcdefg", "4"],
  ];
  expect(alignedTable(["name", "count"], rows, { right: ["count"] })).toBe(
    ["name     count", "李小龍       1", "🙂          20", "é          300", "abcdefg      4", ""].join("\n"),
  );
});

test("no cell ends its line or steers the terminal", () => {
  expect(alignedTable(["a"], [["x\ny\u001b[31m\u2028z"]])).toBe("a\nx?y?[31m?z\n");
});

const rows = [
  ["a", "one two three four five six seven", "1"],
  ["b", "abcdefghijklmnopqrstuvwxyz", "20"],
  ["c", "-", "300"],
];
const layout = { right: ["count"], wrap: ["text"] };

test("a table that is wider than the terminal wraps its long texts, between words where it can", () => {
  expect(alignedTable(["id", "text", "count"], rows, { ...layout, widthMax: 24 })).toBe(
    [
      "id  text           count",
      "a   one two three      1",
      "    four five six",
      "    seven",
      "b   abcdefghijklm     20",
      "    nopqrstuvwxyz",
      "c   -                300",
      "",
    ].join("\n"),
  );
  expect(alignedTable(["id", "text", "count"], rows, { ...layout, widthMax: 200 }).split("\n")).toHaveLength(5);
});

test("a table that no wrapping makes narrow enough becomes a block of lines for each row", () => {
  expect(alignedTable(["id", "text", "count"], rows, { ...layout, widthMax: 22 })).toBe(
    [
      "id     a",
      "text   one two three",
      "       four five six",
      "       seven",
      "count  1",
      "",
      "id     b",
      "text   abcdefghijklmno",
      "       pqrstuvwxyz",
      "count  20",
      "",
      "id     c",
      "count  300",
      "",
    ].join("\n"),
  );
});

test("a text is cut where it is too wide, never through a character", () => {
  expect(cutText("llama3.2", 8)).toBe("llama3.2");
  expect(cutText("llama3.2:3b", 8)).toBe("llama3.…");
  expect(cutText("a, b, c, d", 6)).toBe("a, b,…");
  expect(cutText("李小龍李小龍", 6)).toBe("李小…");
});

test("large numbers are short, and exact", () => {
  expect([0, 60, 1_000, 1_500, 100_000, 1_000_001, 2_000_000].map(countText)).toEqual([
    "0",
    "60",
    "1k",
    "1500",
    "100k",
    "1000001",
    "2M",
  ]);
});

test("how far off a time is is said in a unit that fits", () => {
  const hourMs = 3_600_000;
  expect([90 * 24, 2 * 24, 47, 1.5, -3].map((hours) => fromNow(hours * hourMs, 0))).toEqual([
    "in 90 days",
    "in 2 days",
    "in 47 hours",
    "in 90 minutes",
    "3 hours ago",
  ]);
});
