import { type JoinOutcome, joinTtlMsMax, makeJoin, useJoin } from "#shared/records/join-machine.ts";
import type { KeyStore } from "#shared/records/key-store.ts";
import type { MachineStore } from "#shared/records/machine-record.ts";
import { agentProof, joinKey, type JoinLine, newMachineKeyPair, type PairRequest } from "#shared/protocol/pairing.ts";

export const publicUrl = "https://models.example.org";
const challenge = "a-challenge-of-the-site";

interface Means {
  readonly machines: MachineStore;
  readonly clock: { wall(): number };
  /** Asked about the admin keys that made join lines. */
  readonly keys?: Pick<KeyStore, "find">;
}

/** A join line that an operator made for a machine. */
export async function lineOnStore(name: string, { machines, clock }: Means): Promise<JoinLine> {
  const keys = { awaitReplica: async () => "none" as const };
  const means = { machines, keys, clock, actor: { by: "the operator", request: "req_1" } };
  return (await makeJoin({ name, ttlMs: joinTtlMsMax, publicUrl }, means)).line;
}

/** What a gateway does for a machine that has the line. */
export async function joinOnStore(
  line: JoinLine,
  { machines, clock, keys = { find: async () => ({ kind: "absent" }) } }: Means,
  { publicKey = newMachineKeyPair().publicKey, from = "203.0.113.1" } = {},
): Promise<JoinOutcome & { readonly publicKey: string }> {
  const { id: site } = await machines.site();
  const proving = { join: line.id, publicKey, site, challenge };
  const proof = agentProof(joinKey(line.secret), proving);
  const request: PairRequest = { join: line.id, public_key: publicKey, challenge, proof };
  const means = { machines, keys, clock, isNameUsed: () => false, requestId: "req_2" };
  return { ...(await useJoin({ request, from, site }, means)), publicKey };
}

/** Pairs a machine and returns its public key. */
export async function pairOnStore(name: string, means: Means): Promise<string> {
  const joined = await joinOnStore(await lineOnStore(name, means), means);
  if (joined.outcome !== "paired") throw new Error(`${name} was not paired: ${joined.outcome}`);
  return joined.publicKey;
}
