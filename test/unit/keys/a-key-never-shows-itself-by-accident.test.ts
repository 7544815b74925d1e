import { inspect } from "node:util";
import { expect, test } from "vitest";
import { keyKinds, mintKeyToken, parseKeyToken } from "#shared/keys/key-token.ts";
import { pepperText } from "#shared/keys/pepper.ts";

test.each(keyKinds)("a %s key is [key] however it is turned into text, until it is asked to reveal itself", (kind) => {
  const token = mintKeyToken(kind);
  const accidents = [
    String(token),
    `a key: ${token.toString()}`,
    JSON.stringify({ token }),
    inspect({ token }, { showHidden: true, depth: 9 }),
  ];
  for (const text of accidents) {
    expect(text).toContain("[key]");
    expect(text).not.toContain(token.reveal().slice(-38));
  }
  expect(new Set(Object.values(token))).toEqual(new Set([token.id, kind]));
});

test("a pepper shows nothing but its fingerprint", () => {
  const text = "a pepper that is long enough to be one";
  const pepper = pepperText.parse(text);
  for (const shown of [JSON.stringify(pepper), inspect(pepper, { showHidden: true, depth: 9 })]) {
    expect(shown).not.toContain(text);
    expect(shown).not.toContain(Buffer.from(text).toString("hex"));
  }
});

test("the cache salt of a key is the same wherever the pepper is, and neither another key nor another pepper has it", () => {
  const text = "a pepper that is long enough to be one";
  const salt = pepperText.parse(text).cacheSalt("0123456789AB");
  expect(salt).toMatch(/^[0-9a-f]{32}$/);
  expect(pepperText.parse(text).cacheSalt("0123456789AB")).toBe(salt);
  expect(pepperText.parse(text).cacheSalt("0123456789AC")).not.toBe(salt);
  expect(pepperText.parse("another pepper, long enough to be one").cacheSalt("0123456789AB")).not.toBe(salt);
});

test("keys have the documented form, and no two are alike", () => {
  const texts = Array.from({ length: 500 }, () => mintKeyToken().reveal());
  for (const text of texts) {
    expect(text).toMatch(/^trunkline_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}$/);
    expect(parseKeyToken(text).outcome).toBe("parsed");
  }
  expect(new Set(texts).size).toBe(texts.length);
});

test("every character is as likely as any other", () => {
  const counts = new Map<string, number>();
  const keys = 5_000;
  for (let minted = 0; minted < keys; minted += 1) {
    for (const character of mintKeyToken().reveal().slice(23, 55))
      counts.set(character, (counts.get(character) ?? 0) + 1);
  }
  const expected = (keys * 32) / 62;
  const chiSquare = [...counts.values()].reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
  expect(counts.size).toBe(62);
  // 61 degrees of freedom: above 150 by chance once in 10^9 runs; without rejection sampling it is about 900.
  expect(chiSquare).toBeLessThan(150);
});

test.each([
  "trunkline_0123456789AB_abcdefghijklmnopqrstuvwxyzABCDEF0eO01B",
  "trunkline_000000000052_00000000000000000000000000000000008K6h",
])("the checksum of %s is the CRC-32 of what stands before it, in base62, padded to six characters", (text) => {
  expect(parseKeyToken(text).outcome).toBe("parsed");
  expect(parseKeyToken(`${text.slice(0, -1)}0`).outcome).toBe("checksum_wrong");
});
