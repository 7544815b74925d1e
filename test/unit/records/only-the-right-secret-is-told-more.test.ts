import { judgeToken } from "#shared/records/judge-key.ts";
import { expect, test } from "vitest";
import { type FoundKey, judgeProven, type KeyRecord } from "#shared/records/key-record.ts";
import { type KeyToken, mintKeyToken } from "#shared/keys/key-token.ts";
import { Peppers, pepperText } from "#shared/keys/pepper.ts";

const pepper = pepperText.parse("a pepper that is long enough to be one");
const otherPepper = pepperText.parse("another pepper, long enough to be one");
const [token, formerToken, stranger] = [mintKeyToken(), mintKeyToken(), mintKeyToken()];
const right = token.digest(pepper);
const peppers = new Peppers(pepper);

const record: KeyRecord = {
  id: token.id,
  version: 0,
  kind: "model",
  name: "alice",
  digest: right,
  pepper: pepper.fingerprint,
  scopes: ["*"],
  createdAt: 1_000,
  expiresAt: 2_000,
};
const rotated: KeyRecord = {
  ...record,
  replaced: [{ digest: formerToken.digest(pepper), pepper: pepper.fingerprint, validUntil: 1_500 }],
};
const found = (fields: Partial<KeyRecord> = {}): FoundKey => ({ kind: "record", record: { ...rotated, ...fields } });
const tombstone: FoundKey = { kind: "tombstone", tombstone: { digest: right, expiresAt: 2_000 } };

const outcomeOf = (key: { found: FoundKey; token: KeyToken; nowMs: number }): string =>
  judgeToken({ ...key, peppers }).outcome;

test.each([
  ["a key within its time", found(), 1_499, "valid", "valid", "invalid"],
  ["a key whose former secret has no grace left", found(), 1_500, "valid", "replaced", "invalid"],
  ["a key in the very millisecond of its expiry", found(), 2_000, "expired", "expired", "invalid"],
  ["a disabled key", found({ disabledAt: 1_100 }), 1_499, "disabled", "disabled", "invalid"],
  ["a disabled key that also expired", found({ disabledAt: 1_100 }), 2_000, "expired", "expired", "invalid"],
  ["a revoked key", found({ revokedAt: 1_100 }), 1_499, "invalid", "invalid", "invalid"],
  ["a revoked key that also expired", found({ revokedAt: 1_100 }), 2_000, "invalid", "invalid", "invalid"],
  ["a key of which only the tombstone is left", tombstone, 9_000, "expired", "invalid", "invalid"],
  ["a tombstone before its time", tombstone, 1_999, "invalid", "invalid", "invalid"],
  ["a key that does not exist", { kind: "absent" }, 1_999, "invalid", "invalid", "invalid"],
] as const)(
  "the answer to the holder of the current secret, of the former one, and to anybody else of %s",
  (_, key, nowMs, toItsHolder, toTheFormer, toOthers) => {
    expect(outcomeOf({ found: key, token, nowMs })).toBe(toItsHolder);
    expect(outcomeOf({ found: key, token: formerToken, nowMs })).toBe(toTheFormer);
    expect(outcomeOf({ found: key, token: stranger, nowMs })).toBe(toOthers);
  },
);

test("a verdict says until when the secret that was shown is good, and holds until something changes", () => {
  const judge = (shown: KeyToken) => judgeToken({ found: found(), token: shown, peppers, nowMs: 1_100 });
  expect(judge(token)).toEqual({ outcome: "valid", proven: { record: rotated, secretUntil: Infinity } });
  const verdict = judge(formerToken);
  expect(verdict).toEqual({ outcome: "valid", proven: { record: rotated, secretUntil: 1_500 } });
  if (verdict.outcome !== "valid") throw new Error(verdict.outcome);
  expect(judgeProven(verdict.proven, 1_499).outcome).toBe("valid");
  expect(judgeProven(verdict.proven, 1_500).outcome).toBe("replaced");
  expect(judgeProven(verdict.proven, 2_000).outcome).toBe("expired");
});

const outcome = (key: FoundKey, known: Peppers, shown = token): string =>
  judgeToken({ found: key, token: shown, peppers: known, nowMs: 1_100 }).outcome;
const both = new Peppers(pepper, otherPepper);

test("while a pepper is being replaced a secret that is right is judged, whatever pepper the others of its key are under", () => {
  const replaced = [{ digest: formerToken.digest(otherPepper), pepper: otherPepper.fingerprint, validUntil: 9_000 }];
  const key: FoundKey = { kind: "record", record: { ...record, replaced } };
  expect(outcome(key, new Peppers(pepper))).toBe("valid");
  expect(outcome(key, new Peppers(pepper), formerToken)).toBe("unjudged");
  expect(outcome(key, both, formerToken)).toBe("valid");
});

test("the same key under another pepper is another digest", () => {
  expect(token.digest(otherPepper)).not.toBe(right);
  expect(otherPepper.fingerprint).not.toBe(pepper.fingerprint);
  expect(pepperText.parse("a pepper that is long enough to be one").fingerprint).toBe(pepper.fingerprint);
});

test("a pepper of less than 32 bytes is refused, and not repeated", () => {
  const parsed = pepperText.safeParse("x".repeat(31));
  expect(parsed.error?.message).toContain("at least 32 bytes");
  expect(parsed.error?.message).not.toContain("xxx");
  expect(pepperText.safeParse("ü".repeat(16)).success).toBe(true);
});
