import { describe, expect, test } from "vitest";
import { moneyMax, moneyText, readMoney, sumOf } from "#shared/money/money.ts";

describe("money", () => {
  test.each([
    ["500", 500_000_000, "500.00 EUR"],
    ["0.20", 200_000, "0.20 EUR"],
    ["0.012345", 12_345, "0.012345 EUR"],
    ["0.000001", 1, "0.000001 EUR"],
    ["0", 0, "0.00 EUR"],
    ["999999999.999999", 999_999_999_999_999, "999999999.999999 EUR"],
  ])("the amount %s is %i millionths, and is written as %s", (text, millionths, shown) => {
    expect(readMoney(text)).toBe(millionths);
    expect(moneyText(millionths, "EUR")).toBe(shown);
  });

  test.each(["", "-1", "1e3", "NaN", "Infinity", "1.", ".5", "0.0000001", "1,5", " 1", "1000000000", "1".repeat(309)])(
    "the text '%s' is no amount",
    (text) => expect(readMoney(text)).toBeNaN(),
  );

  test("a sum of things at prices for a million of each is rounded up once, to a millionth", () => {
    expect(sumOf([1, 1])).toBe(1);
    expect(sumOf([500_000, 1], [500_000, 1])).toBe(1);
    expect(sumOf([3, 200_000], [1_000, 600_000])).toBe(601);
    expect(sumOf([0, 200_000])).toBe(0);
    expect(sumOf([10_000_000, 999_999_999_999])).toBe(9_999_999_999_990);
    expect(sumOf([10_485_760, 10 ** 15])).toBe(moneyMax);
  });
});
