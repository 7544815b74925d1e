import * as fc from "fast-check";
import { expect, test } from "vitest";
import { checkKey } from "#shared/keys/check-key.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";
import { mintKeyToken } from "#shared/keys/key-token.ts";
import { pepperText } from "#shared/keys/pepper.ts";

const pepper = pepperText.parse("a pepper that is long enough to be one");
const storeNotToBeAsked: Pick<KeyStore, "find"> = {
  find: () => Promise.reject(new Error("the store was asked")),
};
const verdictOn = (text: string) => checkKey({ text, keys: storeNotToBeAsked, pepper, nowMs: 0 });

test("a key with any one character changed is invalid without asking the store", async () => {
  const text = mintKeyToken().reveal();
  const place = fc.nat(text.length - 1);
  await fc.assert(
    fc.asyncProperty(
      place,
      fc.constantFrom("0", "9", "A", "Z", "a", "z", "_", " ", "\n", "\0", "é", "*"),
      async (at, character) => {
        fc.pre(text.charAt(at) !== character);
        const changed = text.slice(0, at) + character + text.slice(at + 1);
        expect(await verdictOn(changed)).toEqual({ outcome: "invalid" });
      },
    ),
  );
});

test("a text that is no key at all is invalid without asking the store", async () => {
  const real = mintKeyToken().reveal();
  const nearly = [
    `${real} `,
    ` ${real}`,
    `${real}\n`,
    real.slice(0, -1),
    `${real}0`,
    real.toUpperCase(),
    "",
    "trunkline_",
  ];
  for (const text of nearly) expect(await verdictOn(text)).toEqual({ outcome: "invalid" });
  await fc.assert(
    fc.asyncProperty(fc.string({ maxLength: 200 }), async (text) => {
      expect(await verdictOn(text)).toEqual({ outcome: "invalid" });
    }),
  );
});

test("a key whose checksum is right is looked up by its id", async () => {
  const token = mintKeyToken();
  await expect(verdictOn(token.reveal())).rejects.toThrow("the store was asked");
});
