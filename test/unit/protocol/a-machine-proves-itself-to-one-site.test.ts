import { expect, test } from "vitest";
import {
  agentProof,
  joinKey,
  joinLineText,
  newMachineKeyPair,
  parseJoinLine,
  provesMachine,
  provesSame,
  signChallenge,
  siteProof,
} from "#shared/protocol/pairing.ts";

const secret = Buffer.alloc(16, 7);
const pin = Buffer.alloc(32, 9).toString("base64url");
const line = { origin: "https://models.example.org", id: "abcDEF012345", secret };

test.each([
  ["with a public certificate", line],
  ["with a pinned certificate and a port", { ...line, origin: "https://10.0.0.5:8443", certificateSha256: pin }],
  ["for this host in clear text", { ...line, origin: "http://127.0.0.1:8080" }],
])("a join line %s is read as it was written", (_, written) => {
  expect(parseJoinLine(joinLineText(written))).toEqual({ certificateSha256: undefined, ...written });
});

test.each([
  ["clear text to another host", "http://models.example.org/#abcDEF012345.AAAAAAAAAAAAAAAAAAAAAA"],
  ["a path", "https://models.example.org/v1#abcDEF012345.AAAAAAAAAAAAAAAAAAAAAA"],
  ["a short secret", "https://models.example.org/#abcDEF012345.AAAA"],
  ["a fourth part", `https://models.example.org/#abcDEF012345.AAAAAAAAAAAAAAAAAAAAAA.${pin}.${pin}`],
  ["a password", "https://me:pw@models.example.org/#abcDEF012345.AAAAAAAAAAAAAAAAAAAAAA"],
  ["no URL", "join attic"],
])("a join line with %s is refused", (_, text) => {
  expect(parseJoinLine(text)).toBeUndefined();
});

const key = joinKey(secret);
const joining = { join: line.id, publicKey: newMachineKeyPair().publicKey, site: "s".repeat(22), challenge: "c1" };

test("the proofs of a pairing change with every part of what they prove", () => {
  const changed = [
    { ...joining, site: "t".repeat(22) },
    { ...joining, challenge: "c2" },
    { ...joining, publicKey: newMachineKeyPair().publicKey },
    { ...joining, join: "abcDEF012346" },
  ];
  const proofs = [joining, ...changed].map((each) => agentProof(key, each));
  expect(new Set(proofs).size).toBe(proofs.length);
  expect(provesSame(agentProof(key, joining), agentProof(joinKey(secret), { ...joining }))).toBe(true);
});

test("the proofs of a pairing of agent and site differ, so that neither can be sent back as the other", () => {
  expect(provesSame(agentProof(key, joining), siteProof(key, { ...joining, machine: "attic" }))).toBe(false);
});

const pair = newMachineKeyPair();
const signed = { purpose: "connect", site: "s".repeat(22), challenge: "nonce" } as const;
const signature = signChallenge(pair.seed, signed);

test("a machine's signature proves the machine for one site, one challenge and one purpose", () => {
  expect(provesMachine(pair.publicKey, signature, signed)).toBe(true);
  expect(provesMachine(pair.publicKey, signature, { ...signed, site: "t".repeat(22) })).toBe(false);
  expect(provesMachine(pair.publicKey, signature, { ...signed, challenge: "other" })).toBe(false);
  expect(provesMachine(pair.publicKey, signature, { ...signed, purpose: "credential" })).toBe(false);
  expect(provesMachine(newMachineKeyPair().publicKey, signature, signed)).toBe(false);
});

test("a machine's signature is refused without an error when it is no signature", () => {
  expect(provesMachine(pair.publicKey, "nonsense", signed)).toBe(false);
  expect(provesMachine("nobody", signature, signed)).toBe(false);
});
