import { expect, test } from "vitest";
import { usageKeptDays } from "#shared/usage/usage.ts";
import { usageDays } from "#shared/admin/record-operations.ts";

const nowMs = Date.UTC(2026, 2, 1, 23, 59);

test.each([
  [{}, { from: "2026-01-31", to: "2026-03-01" }],
  [{ to: "2026-01-30" }, { from: "2026-01-01", to: "2026-01-30" }],
  [{ from: "2026-02-28" }, { from: "2026-02-28", to: "2026-03-01" }],
  [
    { from: "2025-01-01", to: "2025-01-01" },
    { from: "2025-01-01", to: "2025-01-01" },
  ],
])("%j means %j", (asked, days) => {
  expect(usageDays(asked, nowMs)).toEqual(days);
});

test.each([
  [{ from: "2026-03-02" }, "after the last day"],
  [{ from: "2025-01-24", to: "2026-03-01" }, `more than ${usageKeptDays} days`],
])("%j is refused: %s", (asked, reason) => {
  expect(() => usageDays(asked, nowMs)).toThrow(expect.objectContaining({ param: "from" }));
  expect(() => usageDays(asked, nowMs)).toThrow(reason);
});

test("as many days as are kept can be asked for at once", () => {
  expect(usageDays({ from: "2025-01-26" }, nowMs).from).toBe("2025-01-26");
});
