import * as fc from "fast-check";
import { expect, test } from "vitest";
import { LineCutter } from "#shared/process/cut-lines.ts";

const tooLong = (): Error => new Error("too long");

test("lines are the same wherever their bytes are cut, also in the middle of a character", () => {
  const lines = fc.array(fc.string({ unit: "grapheme", minLength: 1 }).filter((text) => /^[^\n]*\S[^\n]*$/.test(text)));
  fc.assert(
    fc.property(lines, fc.array(fc.nat(40)), (texts, cuts) => {
      const bytes = Buffer.from(texts.map((text) => `${text}\n`).join(""));
      const cutter = new LineCutter(10_000, tooLong);
      const taken: string[] = [];
      let from = 0;
      for (const cut of [...cuts, bytes.length]) {
        taken.push(...cutter.take(bytes.subarray(from, from + cut)));
        from += cut;
      }
      expect(taken).toEqual(texts);
    }),
  );
});

test("a line that is not ended is kept back, and an empty one is none", () => {
  const cutter = new LineCutter(100, tooLong);
  expect(cutter.take(Buffer.from("\n \na"))).toEqual([]);
  expect(cutter.take(Buffer.from("b\n"))).toEqual(["ab"]);
});

test("a line longer than the limit is an error, whether it comes at once or bit by bit", () => {
  expect(new LineCutter(3, tooLong).take(Buffer.from("abc\nabc\n"))).toEqual(["abc", "abc"]);
  expect(() => new LineCutter(3, tooLong).take(Buffer.from("abcd\n"))).toThrow("too long");
  const cutter = new LineCutter(3, tooLong);
  cutter.take(Buffer.from("ab"));
  expect(() => cutter.take(Buffer.from("cd"))).toThrow("too long");
});
