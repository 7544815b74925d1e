import { expect, test } from "vitest";
import { applyMachineChange, type MachineChange, whyNotRemoved } from "#shared/records/change-machine.ts";
import { judgeJoin } from "#shared/records/join-machine.ts";
import type { MachineRecord } from "#shared/records/machine-record.ts";
import { showMachineRecord } from "#shared/records/shown-machine.ts";
import { agentProof, newMachineKeyPair } from "#shared/protocol/pairing.ts";

const atMs = 1_800_000_000_000;
const by = "the operator";
const { publicKey } = newMachineKeyPair();
const key = Buffer.alloc(32, 7);
const newJoin = { id: "abcDEF012345", key: key.toString("base64url"), expiresAt: atMs + 1_000 };
const invited: MachineRecord = { name: "attic", version: 1, createdAt: 1, changedAt: 1, join: { ...newJoin, by } };

function apply(record: MachineRecord | undefined, change: MachineChange, at = atMs) {
  return applyMachineChange(record, change, { name: "attic", at, by });
}

function changed(record: MachineRecord | undefined, ...changes: MachineChange[]): MachineRecord {
  const after = changes.reduce((before: MachineRecord | undefined, change) => {
    const applied = apply(before, change);
    if (applied.outcome !== "changed") throw new Error(`${change.action}: ${JSON.stringify(applied)}`);
    return applied.record;
  }, record);
  if (after === undefined) throw new Error("no change was given");
  return after;
}

const joined = { action: "machine_joined", publicKey, from: "203.0.113.1" } as const;
const paired = changed(invited, joined);
const revoked = changed(paired, { action: "machine_revoked" });
const cordon = { action: "machine_cordoned", reason: "new fans" } as const;
const stateOf = (record: MachineRecord, nowMs = atMs) => showMachineRecord(record, { nowMs }).state;

test("the record of a machine goes through its states: joining, paired, cordoned, revoked, and joining and paired anew", () => {
  expect(stateOf(invited)).toBe("joining");
  expect(stateOf(invited, atMs + 1_000)).toBe("unpaired");
  expect(stateOf(paired)).toBe("paired");
  expect(stateOf(changed(paired, cordon))).toBe("cordoned");
  expect(stateOf(revoked)).toBe("revoked");
  const again = changed(revoked, { action: "machine_paired", join: { ...newJoin, id: "ABCdef012345" } });
  expect(stateOf(again)).toBe("joining");
  const other = newMachineKeyPair().publicKey;
  const anew = changed(again, { ...joined, publicKey: other });
  expect(anew).toMatchObject({ publicKey: other, pairedBy: by, version: 5 });
  expect(anew.revokedAt).toBeUndefined();
  expect(stateOf(anew)).toBe("paired");
});

test("the record of a machine loses its cordon and an unused join line by a revocation, and keeps its key and its models", () => {
  const before = changed(paired, cordon, { action: "machine_set", models: ["llama*"] });
  const after = changed(before, { action: "machine_revoked" });
  expect(after).toMatchObject({ publicKey, models: ["llama*"], revokedAt: atMs, join: { usedAt: atMs } });
  expect(after.cordon).toBeUndefined();
  const again = changed(after, { action: "machine_paired", join: newJoin });
  const withdrawn = changed(again, { action: "machine_revoked" });
  expect([withdrawn.join, withdrawn.revokedAt]).toEqual([undefined, atMs]);
  expect(apply(withdrawn, { action: "machine_revoked" }).outcome).toBe("unchanged");
});

test("the record of a machine notes the first attempt to use its join line again, and no later one", () => {
  const after = changed(paired, { action: "machine_join_reused", from: "198.51.100.9" });
  expect(after.join).toMatchObject({ usedFrom: "203.0.113.1", usedAgainFrom: "198.51.100.9", usedAgainAt: atMs });
  expect(apply(after, { action: "machine_join_reused", from: "192.0.2.1" }).outcome).toBe("unchanged");
});

test.each([
  ["made a line for", paired, { action: "machine_paired", join: newJoin }, "is paired already: revoke it first"],
  ["cordoned", revoked, cordon, "was revoked: pair it anew"],
  ["renamed", revoked, { action: "machine_renamed", name: "loft" }, "was revoked: pair it anew"],
  ["renamed", invited, { action: "machine_renamed", name: "loft" }, "was never paired"],
  ["joined", paired, joined, "has no join line to use"],
] as const)("the record of a machine refuses to be %s where that makes no sense", (_, record, change, reason) => {
  expect(apply(record, change)).toEqual({ outcome: "refused", reason: expect.stringContaining(reason) });
});

test("the record of a machine is drained also while it is cordoned, and keeps the reason of its cordon", () => {
  const drained = changed(paired, cordon, { ...cordon, drains: true });
  expect(drained.cordon).toMatchObject({ reason: "new fans", drains: true });
  expect(changed(drained, { action: "machine_uncordoned" }).cordon).toBeUndefined();
});

test("the record of a machine is made by a line, a cordon and permitted models, and by no other change", () => {
  const making: MachineChange[] = [
    { action: "machine_paired", join: newJoin },
    cordon,
    { action: "machine_set", models: ["*"] },
  ];
  for (const change of making) expect(changed(undefined, change)).toMatchObject({ name: "attic", version: 1 });
  for (const action of ["machine_revoked", "machine_uncordoned"] as const) {
    expect(apply(undefined, { action })).toEqual({ outcome: "unknown" });
  }
});

test("the record of a machine is removed when it was never paired, or after its revocation", () => {
  expect(whyNotRemoved(invited)).toBeUndefined();
  expect(whyNotRemoved(paired)).toContain("revoke it first");
  expect(whyNotRemoved(revoked)).toBeUndefined();
});

const site = "s".repeat(22);
const challenge = "a-challenge-of-the-site";
const use = (proofKey: Uint8Array, { publicKey: own = publicKey, join = newJoin.id } = {}) => {
  const proof = agentProof(proofKey, { join, publicKey: own, site, challenge });
  return { request: { join, public_key: own, challenge, proof }, from: "203.0.113.1", site };
};

test("the use of a join line is good once, and repeated for the machine that missed the answer", () => {
  expect(judgeJoin(invited, use(key), atMs)).toEqual({ outcome: "good" });
  expect(judgeJoin(paired, use(key), atMs)).toEqual({ outcome: "repeated" });
  const other = use(key, { publicKey: newMachineKeyPair().publicKey });
  expect(judgeJoin(paired, other, atMs)).toEqual({
    outcome: "used",
    machine: "attic",
    usedAt: atMs,
    usedFrom: "203.0.113.1",
  });
  expect(judgeJoin(revoked, use(key), atMs)).toMatchObject({ outcome: "used" });
});

test("the use of a join line is told as expired to the holder of the secret only", () => {
  expect(judgeJoin(invited, use(key), atMs + 1_000)).toMatchObject({ outcome: "expired", machine: "attic" });
  const wrong = use(Buffer.alloc(32, 8));
  for (const record of [invited, paired, revoked, undefined]) {
    expect(judgeJoin(record, wrong, atMs + 1_000)).toEqual({ outcome: "invalid" });
  }
});

test("the use of a join line is refused for a proof of another key, site or challenge", () => {
  const right = use(key);
  const { request } = right;
  const others = [
    { ...right, site: "t".repeat(22) },
    { ...right, request: { ...request, challenge: "another-challenge-of-it" } },
    { ...right, request: { ...request, public_key: newMachineKeyPair().publicKey } },
    { ...right, request: { ...request, join: "ABCdef012345" } },
  ];
  for (const other of others) expect(judgeJoin(invited, other, atMs)).toEqual({ outcome: "invalid" });
});
