import { expect, test } from "vitest";
import { judge, type FoundKey, type KeyRecord } from "#shared/keys/key-record.ts";
import { mintKeyToken } from "#shared/keys/key-token.ts";
import { pepperText } from "#shared/keys/pepper.ts";

const pepper = pepperText.parse("a pepper that is long enough to be one");
const token = mintKeyToken();
const right = token.digest(pepper);
const wrong = mintKeyToken().digest(pepper);

const record: KeyRecord = {
  id: token.id,
  name: "alice",
  digest: right,
  pepper: pepper.fingerprint,
  scopes: ["*"],
  createdAt: 1_000,
  expiresAt: 2_000,
};
const valid: FoundKey = { kind: "record", record };
const revoked: FoundKey = { kind: "record", record: { ...record, revokedAt: 1_500 } };
const tombstone: FoundKey = { kind: "tombstone", tombstone: { digest: right, expiresAt: 2_000 } };
const absent: FoundKey = { kind: "absent" };

test.each([
  ["a key within its time is valid to its holder", valid, 1_999, "valid", "invalid"],
  ["a key is expired from the very millisecond of its expiry", valid, 2_000, "expired", "invalid"],
  ["a revoked key is invalid, also to its holder", revoked, 1_999, "invalid", "invalid"],
  ["a revoked key that also expired stays invalid", revoked, 2_000, "invalid", "invalid"],
  ["a key of which only the tombstone is left is expired", tombstone, 9_000, "expired", "invalid"],
  ["a tombstone before its time gives nothing away", tombstone, 1_999, "invalid", "invalid"],
  ["a key that does not exist is invalid", absent, 1_999, "invalid", "invalid"],
] as const)("%s", (_, found, nowMs, toItsHolder, toOthers) => {
  expect(judge({ found, digest: right, nowMs }).outcome).toBe(toItsHolder);
  expect(judge({ found, digest: wrong, nowMs }).outcome).toBe(toOthers);
});

test("the same key under another pepper is another digest", () => {
  const other = pepperText.parse("another pepper, long enough to be one");
  expect(token.digest(other)).not.toBe(right);
  expect(other.fingerprint).not.toBe(pepper.fingerprint);
  expect(pepperText.parse("a pepper that is long enough to be one").fingerprint).toBe(pepper.fingerprint);
});

test("a pepper of less than 32 bytes is refused, and not repeated", () => {
  const parsed = pepperText.safeParse("x".repeat(31));
  expect(parsed.error?.message).toContain("at least 32 bytes");
  expect(parsed.error?.message).not.toContain("xxx");
  expect(pepperText.safeParse("ü".repeat(16)).success).toBe(true);
});
