import {
  agentProof,
  challengeAnswer,
  challengePath,
  joinKey,
  newMachineKeyPair,
  pairAnswer,
  type PairAnswer,
  pairPath,
  provesSame,
  siteProof,
} from "#shared/protocol/pairing.ts";
import { type ErrorTold, errorOf } from "./endpoint.ts";

/** A join line as a machine has it, or what a guesser takes for one. */
export interface HeldLine {
  readonly id: string;
  readonly secret: Uint8Array;
}

export type Paired =
  | { readonly status: 200; readonly answer: PairAnswer; readonly isProved: boolean }
  | { readonly status: number; readonly error: ErrorTold };

/** Pairs a key by hand as an agent does it: asks for a challenge and answers it. */
export async function pairAt(
  origin: string,
  line: HeldLine,
  {
    publicKey = newMachineKeyPair().publicKey,
    challenge: given,
  }: { readonly publicKey?: string; readonly challenge?: string } = {},
): Promise<Paired> {
  const told = challengeAnswer.parse(await (await fetch(new URL(challengePath, origin))).json());
  const { site } = told;
  const challenge = given ?? told.challenge;
  const key = joinKey(line.secret);
  const proving = { join: line.id, publicKey, site, challenge };
  const response = await fetch(new URL(pairPath, origin), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ join: line.id, public_key: publicKey, challenge, proof: agentProof(key, proving) }),
  });
  if (response.status !== 200) return { status: response.status, error: await errorOf(response) };
  const answer = pairAnswer.parse(await response.json());
  const isProved = provesSame(answer.proof, siteProof(key, { ...proving, machine: answer.machine }));
  return { status: 200, answer, isProved };
}
