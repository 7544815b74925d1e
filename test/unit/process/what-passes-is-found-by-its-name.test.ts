import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Passing } from "#shared/process/passing.ts";
import { newToken } from "#shared/protocol/identifiers.ts";

/** Some end alike, some are shorter than what is told of an end, and some are tokens. */
const name = fc.oneof(
  fc.constantFrom("", "a", "ba", "one of them", "another of them", "last of them"),
  fc.string({ maxLength: 3 }),
  fc.noShrink(fc.constant(0).map(() => newToken())),
);
const step = fc.record({ name, does: fc.constantFrom("set", "delete", "get"), value: fc.integer() });

const sorted = (numbers: readonly number[]) => numbers.toSorted((one, other) => one - other);

test("whatever comes and goes, each is found by its own name, and nothing that is gone", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
      const passing = new Passing<number>();
      const known = new Map<string, number>();
      for (const { name: each, does, value } of steps) {
        if (does === "set") {
          passing.set(each, value);
          known.set(each, value);
        } else if (does === "delete") {
          passing.delete(each);
          known.delete(each);
        }
        expect(passing.get(each)).toBe(known.get(each));
        expect(passing.has(each)).toBe(known.has(each));
        expect(passing.size).toBe(known.size);
      }
      expect(sorted(passing.values())).toEqual(sorted([...known.values()]));
    }),
  );
});

test("there is room for any number of them", () => {
  const passing = new Passing<number>();
  const names = Array.from({ length: 5_000 }, () => newToken());
  for (const [at, each] of names.entries()) passing.set(each, at);
  expect(passing.size).toBe(5_000);
  for (const [at, each] of names.entries()) expect(passing.get(each)).toBe(at);
  for (const each of names.slice(0, 4_990)) passing.delete(each);
  expect(sorted(passing.values())).toEqual([4_990, 4_991, 4_992, 4_993, 4_994, 4_995, 4_996, 4_997, 4_998, 4_999]);
});
