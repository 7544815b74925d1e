import * as fc from "fast-check";
import { expect, test } from "vitest";
import { keyKinds, mintKeyToken, parseKeyToken } from "#shared/keys/key-token.ts";

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

test("a key whose checksum is right is a token with its id", () => {
  const token = mintKeyToken();
  expect(parseKeyToken(token.reveal())).toMatchObject({ outcome: "parsed", token: { id: token.id } });
});
