import * as fc from "fast-check";
import { expect, test } from "vitest";
import { machineName, machineNameOf } from "#shared/protocol/identifiers.ts";

test("whatever a host calls itself, its machine has a valid name", () => {
  const hostname = fc.oneof(
    fc.string({ unit: "binary", maxLength: 100 }),
    fc.domain(),
    fc.stringMatching(/^[-._A-Z0-9]{0,90}$/),
  );
  fc.assert(
    fc.property(hostname, (name) => {
      expect(machineName.safeParse(machineNameOf(name)).success).toBe(true);
    }),
    { numRuns: 1_000 },
  );
});

test("a valid name stays as it is", () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,62}$/), (name) => {
      expect(machineNameOf(name)).toBe(name);
    }),
  );
});

test.each([
  ["GPU-1", "gpu-1"],
  ["gpu1.example.org", "gpu1"],
  ["Anna's MacBook Pro", "anna-s-macbook-pro"],
  ["--x", "x"],
  ["", "machine"],
  ["...", "machine"],
  ["東京", "machine"],
  ["a".repeat(70), "a".repeat(63)],
])("%j becomes %j", (hostname, name) => {
  expect(machineNameOf(hostname)).toBe(name);
});
