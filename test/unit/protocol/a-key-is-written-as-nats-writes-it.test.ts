import { createAccount, createOperator, createUser, fromPublic, fromSeed } from "@nats-io/nkeys";
import { expect, test } from "vitest";
import { isSignedBy, Nkey, type NkeyKind } from "#shared/protocol/nkey.ts";

const text = Buffer.from("signed");
const libraryKeys = { O: createOperator, A: createAccount, U: createUser } as const;

const kinds: NkeyKind[] = ["O", "A", "U"];

test.each(kinds)("a key of the kind %s has the public key and signature that the library of NATS gives", (kind) => {
  const key = Nkey.make(kind);
  const known = fromSeed(Buffer.from(key.seed));
  expect(key.publicKey).toBe(known.getPublicKey());
  expect(key.publicKey).toMatch(new RegExp(`^${kind}[A-Z2-7]{55}$`));
  expect([...key.sign(text)]).toEqual([...known.sign(text)]);
  expect(fromPublic(key.publicKey).verify(text, key.sign(text))).toBe(true);
});

test.each(kinds)("a key of the kind %s is read from a seed of the library, and verifies its signatures", (kind) => {
  const known = libraryKeys[kind]();
  const seed = Buffer.from(known.getSeed()).toString();
  const key = Nkey.fromSeed(kind, seed);
  expect([key?.seed, key?.publicKey]).toEqual([seed, known.getPublicKey()]);
  expect(isSignedBy(known.getPublicKey(), text, known.sign(text))).toBe(true);
  expect(isSignedBy(Nkey.make(kind).publicKey, text, known.sign(text))).toBe(false);
});

test.each([
  ["another kind's seed", Nkey.make("U").seed],
  ["a public key", Nkey.make("A").publicKey],
  ["a seed with a changed letter", Nkey.make("A").seed.replace(/^(.{20})./, (_, head) => `${head}?`)],
  ["a seed with two letters exchanged", exchanged(Nkey.make("A").seed)],
  ["a cut seed", Nkey.make("A").seed.slice(0, -1)],
  ["an empty text", ""],
])("%s is no seed of an account", (_, seed) => {
  expect(Nkey.fromSeed("A", seed)).toBeUndefined();
});

test.each(["", "U", "UAAA", "not a key", Nkey.make("U").seed])("nothing is signed by %j", (publicKey) => {
  expect(isSignedBy(publicKey, text, Nkey.make("U").sign(text))).toBe(false);
});

test.each(["", "short", "x".repeat(200)])("a signature of the wrong length, such as %j, is refused", (signature) => {
  expect(isSignedBy(Nkey.make("U").publicKey, text, Buffer.from(signature))).toBe(false);
});

/** Exchanges the first two letters after the tenth that differ from each other. */
function exchanged(seed: string): string {
  const at = Array.from(seed).findIndex((letter, place) => place > 10 && letter !== seed[place + 1]);
  return seed.slice(0, at) + seed[at + 1] + seed[at] + seed.slice(at + 2);
}
