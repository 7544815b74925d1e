import { inspect } from "node:util";
import { expect, test } from "vitest";
import { type KeyKind, keyKinds, mintKeyToken, parseKeyToken } from "#shared/keys/key-token.ts";
import { pepperText } from "#shared/keys/pepper.ts";
import * as fc from "fast-check";
import { crc32 } from "node:zlib";

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

const forms: Record<KeyKind, RegExp> = {
  model: /^trunkline_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}$/,
  admin: /^trunkline_admin_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}$/,
  viewer: /^trunkline_viewer_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}$/,
};

test("keys have the documented form, and no two are alike", () => {
  const texts = Array.from({ length: 500 }, () => mintKeyToken().reveal());
  for (const text of texts) expect(text).toMatch(forms.model);
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

/** Only what was parsed is a token, and only a token can be looked up: what is refused here costs no store call. */
const outcomeOf = (text: string): string => parseKeyToken(text).outcome;

test.each(keyKinds)("a %s key with any one character changed is no key", (kind) => {
  const text = mintKeyToken(kind).reveal();
  fc.assert(
    fc.property(
      fc.nat(text.length - 1),
      fc.constantFrom("0", "9", "A", "Z", "a", "z", "_", " ", "\n", "\0", "é", "*"),
      (at, character) => {
        fc.pre(text.charAt(at) !== character);
        expect(outcomeOf(text.slice(0, at) + character + text.slice(at + 1))).not.toBe("parsed");
      },
    ),
  );
});

test.each(keyKinds)("a text that is nearly a %s key is malformed", (kind) => {
  const real = mintKeyToken(kind).reveal();
  const nearly = [
    `${real} `,
    ` ${real}`,
    `${real}\n`,
    real.slice(0, -1),
    `${real}0`,
    real.toUpperCase(),
    "",
    "trunkline_",
    "trunkline_admin_",
  ];
  for (const text of nearly) expect(outcomeOf(text)).toBe("malformed");
});

test("a text that is no key at all is malformed, however long it is", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 200 }), (text) => {
      expect(outcomeOf(text)).toBe("malformed");
    }),
  );
  expect(outcomeOf(mintKeyToken().reveal().repeat(100_000))).toBe("malformed");
});

test.each(keyKinds)("a %s key has the form of its kind alone, and is read as one", (kind) => {
  const token = mintKeyToken(kind);
  for (const each of keyKinds) expect(forms[each].test(token.reveal())).toBe(each === kind);
  expect(token.kind).toBe(kind);
  expect(parseKeyToken(token.reveal())).toMatchObject({ outcome: "parsed", token: { kind, id: token.id } });
});

test.each(keyKinds)("a %s key whose prefix is exchanged for the other kind's is no key", (kind) => {
  const text = mintKeyToken(kind).reveal();
  const rest = text.replace(/^trunkline_(admin_|viewer_)?/, "");
  const exchanged = kind === "model" ? `trunkline_admin_${rest}` : `trunkline_${rest}`;
  expect(parseKeyToken(exchanged).outcome).toBe("checksum_wrong");
});

test("with its checksum made right, an exchanged prefix makes another key, of which the store knows nothing", () => {
  const pepper = pepperText.parse("a pepper that is long enough to be one");
  const model = mintKeyToken("model");
  const unsigned = model.reveal().slice(0, -6).replace("trunkline_", "trunkline_admin_");
  const parsed = parseKeyToken(unsigned + base62Checksum(unsigned));
  if (parsed.outcome !== "parsed") throw new Error(parsed.outcome);
  expect(parsed.token).toMatchObject({ kind: "admin", id: model.id });
  expect(parsed.token.digest(pepper)).not.toBe(model.digest(pepper));
});

test("a new secret for a key is of its id and kind", () => {
  const first = mintKeyToken("admin");
  const second = mintKeyToken("admin", first.id);
  expect(second).toMatchObject({ id: first.id, kind: "admin" });
  expect(second.reveal()).not.toBe(first.reveal());
});

function base62Checksum(text: string): string {
  const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const digits = Array.from({ length: 6 }, (_, place) => Math.floor(crc32(text) / 62 ** (5 - place)) % 62);
  return digits.map((digit) => alphabet.charAt(digit)).join("");
}
