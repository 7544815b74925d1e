import { expect, test } from "vitest";
import { judgeTakeovers, type KeyUse } from "../../../../services/gateway/tunnels/open-tunnels.ts";

/** Uses of a key, a word each: `x` is a connection of process x, `X` one that replaced another process's open one. */
function uses(text: string, everyMs = 1_000): KeyUse[] {
  return text.split(" ").map((word, place) => {
    const boot = word.toLowerCase();
    return { atMs: place * everyMs, boot, address: `address of ${boot}`, isTakeover: word !== boot };
  });
}

test.each([
  ["never", ""],
  ["once", "x"],
  ["by one process that connects again and again", "x x x x x"],
  ["by one process after the other", "x y z"],
  ["by processes that each replaced a connection of the former, twice within a minute", "x Y Z"],
])("a machine's key used %s raises no suspicion", (_, text) => {
  expect(judgeTakeovers(text === "" ? [] : uses(text))).toBeUndefined();
});

test.each([
  ["a process comes back after another one", "x y x", "y", "x"],
  ["a process comes back after a while", "x x y y y x", "y", "x"],
  ["a process comes back after two others", "x y z x", "z", "x"],
  ["three connections were taken over within a minute", "x Y Z W", "z", "w"],
])("a machine's key is used twice when %s", (_, text, ...boots) => {
  expect(judgeTakeovers(uses(text))).toEqual(boots.map((boot) => `address of ${boot}`));
});

test("a machine's key may change hands three times when that takes longer than a minute", () => {
  expect(judgeTakeovers(uses("x Y Z W", 30_000))).toBeUndefined();
});
