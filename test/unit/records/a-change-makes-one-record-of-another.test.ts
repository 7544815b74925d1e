import { expect, test } from "vitest";
import { adminTtlMsMax } from "#shared/records/issue-key.ts";
import { applyChange, type ChangedKey, type KeyChange } from "#shared/records/change-key.ts";
import { keyRecord, replacedSecretsMax, type KeyRecord, type NewTerms } from "#shared/records/key-record.ts";
import { mintKeyToken } from "#shared/keys/key-token.ts";
import { pepperText } from "#shared/keys/pepper.ts";

const pepper = pepperText.parse("a pepper that is long enough to be one");
const otherPepper = pepperText.parse("another pepper, long enough to be one");
const token = mintKeyToken();
const newSecret = () => ({ digest: mintKeyToken("model", token.id).digest(pepper), pepper: pepper.fingerprint });
const dayMs = 86_400_000;
const nowMs = Date.UTC(2026, 0, 10);
const expiresAt = nowMs + 30 * dayMs;

const record: KeyRecord = {
  id: token.id,
  version: 7,
  kind: "model",
  name: "alice",
  digest: token.digest(pepper),
  pepper: pepper.fingerprint,
  scopes: ["llama3"],
  machines: ["attic"],
  limits: { requestsPerMinute: 60, concurrency: 2 },
  createdAt: nowMs - dayMs,
  expiresAt,
};
const disabled: KeyRecord = { ...record, disabledAt: nowMs - 1 };
const revoked: KeyRecord = { ...record, revokedAt: nowMs - 1 };
const expired: KeyRecord = { ...record, expiresAt: nowMs };
const admin: KeyRecord = { ...record, kind: "admin" };

const apply = (before: KeyRecord, change: KeyChange): ChangedKey => {
  const untouched = structuredClone(before);
  const done = applyChange(before, change, nowMs);
  expect(before).toEqual(untouched);
  if (done.outcome === "changed") expect(keyRecord.parse(done.record)).toEqual(done.record);
  return done;
};

/** Each makes a record that is one version newer and else differs in these fields alone; undefined is gone. */
const secret = newSecret();
const before = { digest: record.digest, pepper: record.pepper };
const repeppered = { digest: token.digest(otherPepper), pepper: otherPepper.fingerprint };
test.each<[string, KeyRecord, KeyChange, { [Field in keyof KeyRecord]?: KeyRecord[Field] | undefined }]>([
  ["extended: its time from now on", record, extended(60), { expiresAt: nowMs + 60 * dayMs }],
  ["extended to the very time that it has", record, extended(30), { expiresAt }],
  ["extended after it expired", expired, extended(1), { expiresAt: nowMs + dayMs }],
  ["extended while disabled: it stays so", disabled, extended(60), { expiresAt: nowMs + 60 * dayMs }],
  ["an admin key, extended to its limit", admin, extended(90), { expiresAt: nowMs + adminTtlMsMax }],
  [
    "rotated: another secret, and the one before for its grace",
    record,
    { action: "rotated", secret, graceMs: dayMs },
    { ...secret, replaced: [{ ...before, validUntil: nowMs + dayMs }] },
  ],
  [
    "rotated without any grace",
    disabled,
    { action: "rotated", secret, graceMs: 0 },
    { ...secret, replaced: [{ ...before, validUntil: nowMs }] },
  ],
  ["disabled", record, { action: "disabled" }, { disabledAt: nowMs }],
  ["enabled", disabled, { action: "enabled" }, { disabledAt: undefined }],
  ["revoked", record, { action: "revoked" }, { revokedAt: nowMs }],
  ["revoked after it expired", expired, { action: "revoked" }, { revokedAt: nowMs }],
  ["revoked while disabled", disabled, { action: "revoked" }, { revokedAt: nowMs }],
  [
    "repeppered: the same secret, nothing replaced",
    record,
    { action: "repeppered", from: record.digest, secret: repeppered },
    repeppered,
  ],
])("a change has the fields that it is about, and no others: %s", (_, key, change, fields) => {
  const expected = Object.entries({ ...key, ...fields, version: 8 }).filter(([, value]) => value !== undefined);
  expect(apply(key, change)).toMatchObject({ outcome: "changed", record: Object.fromEntries(expected) });
  expect(Object.keys(changedRecord(apply(key, change))).toSorted()).toEqual(expected.map(([field]) => field).sort());
});

test.each<[string, NewTerms, { [Field in keyof KeyRecord]?: KeyRecord[Field] | undefined }]>([
  ["a name", { name: "bob" }, { name: "bob" }],
  ["scopes", { scopes: ["*"] }, { scopes: ["*"] }],
  ["other machines", { machines: ["cellar"] }, { machines: ["cellar"] }],
  ["all machines", { machines: null }, { machines: undefined }],
  ["one limit, beside those that it has", { limits: { concurrency: 3 } }, limited({ concurrency: 3 })],
  ["one limit less", { limits: { concurrency: null } }, { limits: { requestsPerMinute: 60 } }],
  ["no limits", { limits: { concurrency: null, requestsPerMinute: null } }, { limits: undefined }],
  [
    "a budget",
    { limits: { budget: { tokens: 5, per: "day" } } },
    limited({ budget: { tokens: 5, per: "day" as const } }),
  ],
])("a change of terms changes these fields, and no others: %s", (_, terms, fields) => {
  const expected = Object.entries({ ...record, ...fields, version: 8 }).filter(([, value]) => value !== undefined);
  expect(changedRecord(apply(record, { action: "changed", terms }))).toEqual(Object.fromEntries(expected));
});

test("a term that is named without a value stays as it is", () => {
  const terms: NewTerms = { name: "bob", machines: undefined, limits: { concurrency: undefined } };
  expect(changedRecord(apply(record, { action: "changed", terms }))).toEqual({ ...record, name: "bob", version: 8 });
});

test("an admin key takes another name from the command line, which names all limits without a value", () => {
  const terms: NewTerms = { name: "console", limits: { requestsPerMinute: undefined, concurrency: undefined } };
  expect(changedRecord(apply(admin, { action: "changed", terms }))).toEqual({ ...admin, name: "console", version: 8 });
});

function limited(more: KeyRecord["limits"]) {
  return { limits: { ...record.limits, ...more } };
}

test.each<[string, KeyRecord, KeyChange]>([
  ["revoked again", revoked, { action: "revoked" }],
  ["disabled again", disabled, { action: "disabled" }],
  ["enabled without having been disabled", record, { action: "enabled" }],
  ["the same terms", record, { action: "changed", terms: { name: "alice", limits: { concurrency: 2 } } }],
  ["no terms", record, { action: "changed", terms: {} }],
  ["a limit taken away that it has not", record, { action: "changed", terms: { limits: { budget: null } } }],
  ["repeppered from a secret that it no longer has", record, repepperedFromAnother()],
])("values that are set already make no version: %s", (_, key, change) => {
  expect(apply(key, change)).toEqual({ outcome: "unchanged", record: key });
});

function repepperedFromAnother(): KeyChange {
  return { action: "repeppered", from: mintKeyToken().digest(pepper), secret: newSecret() };
}

const rotated: KeyChange = { action: "rotated", secret: newSecret(), graceMs: dayMs };
test.each<[string, KeyRecord, KeyChange, string]>([
  ["a revoked key extended", revoked, extended(60), "was revoked"],
  ["a revoked key enabled", { ...revoked, disabledAt: 1 }, { action: "enabled" }, "was revoked"],
  ["a revoked key disabled", revoked, { action: "disabled" }, "was revoked"],
  ["a revoked key rotated", revoked, rotated, "was revoked"],
  ["a revoked key given other terms", revoked, { action: "changed", terms: { name: "bob" } }, "was revoked"],
  ["an expired key rotated", expired, rotated, "extend it first"],
  ["extended to less than it has", record, extended(29), "is valid until 2026-02-09T00:00:00.000Z already"],
  ["an admin key extended beyond its limit", admin, extended(91), "90d at most"],
  [
    "an admin key given a limit",
    admin,
    { action: "changed", terms: { limits: { requestsPerMinute: 7 } } },
    "only its name can be changed",
  ],
])("a change is refused with its reason: %s", (_, key, change, reason) => {
  expect(apply(key, change)).toEqual({ outcome: "refused", reason: expect.stringContaining(reason) });
});

test("the latest of the replaced secrets are remembered, each with its own grace", () => {
  let key = record;
  const digests: string[] = [];
  for (let rotations = 1; rotations <= replacedSecretsMax + 1; rotations += 1) {
    digests.unshift(key.digest);
    key = changedRecord(apply(key, { action: "rotated", secret: newSecret(), graceMs: rotations }));
  }
  expect(key.replaced?.map(({ digest }) => digest)).toEqual(digests.slice(0, replacedSecretsMax));
  expect(key.replaced?.map(({ validUntil }) => validUntil - nowMs)).toEqual([9, 8, 7, 6, 5, 4, 3, 2]);
});

test("the trail is told what changed, and neither secrets nor digests", () => {
  const changes: KeyChange[] = [
    extended(60),
    { action: "rotated", secret: newSecret(), graceMs: dayMs },
    { action: "changed", terms: { name: "bob", machines: null } },
  ];
  const details = changes.map((change) => {
    const done = apply(record, change);
    return done.outcome === "changed" ? done.detail : undefined;
  });
  expect(details).toMatchObject([
    { expires_at: "2026-03-11T00:00:00.000Z", was: "2026-02-09T00:00:00.000Z" },
    { old_secret_valid_until: "2026-01-11T00:00:00.000Z" },
    { machines: null, was: { machines: ["attic"] } },
  ]);
  expect(JSON.stringify(details)).not.toMatch(/[0-9a-f]{64}/);
});

function extended(days: number): KeyChange {
  return { action: "extended", ttlMs: days * dayMs };
}

function changedRecord(done: ChangedKey): KeyRecord {
  if (done.outcome !== "changed") throw new Error(done.outcome);
  return done.record;
}
