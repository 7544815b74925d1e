import { isTakenBack } from "./key-lineage.ts";
import { randomBytes } from "node:crypto";
import packageJson from "../../package.json" with { type: "json" };
import { Fault } from "../fault/fault.ts";
import { type KeyStore, retryConflicts } from "./key-store.ts";
import type { KeyId } from "../keys/key-token.ts";
import type { Clock } from "../process/clock.ts";
import { newToken } from "../protocol/identifiers.ts";
import {
  agentProof,
  joinKey,
  type JoinLine,
  joinLineText,
  type PairRequest,
  provesSame,
  siteProof,
} from "../protocol/pairing.ts";
import { packageCommand, packagePath } from "../protocol/site-package.ts";
import {
  attemptMachineChange,
  type MachineChanged,
  changeMachine,
  contended,
  type MachineMeans,
} from "./change-machine.ts";
import { addressCharactersMax, type MachineRecord, type MachineStore } from "./machine-record.ts";

/** The longest time for which a join line is good, and the usual one. */
export const joinTtlMsMax = 600_000;

const joinIdCharacters = 12;
const joinSecretBytes = 16;

interface WantedJoin {
  readonly name: string;
  readonly ttlMs: number;
  /** The URL by which the machine reaches the site. Undefined for the one that the site's gateways noted. */
  readonly publicUrl?: string | undefined;
  /** Undefined leaves the permitted models of an existing record as they are. */
  readonly models?: readonly string[] | undefined;
  /** The admin key that asks for the line, which is good only as long as the key. */
  readonly admin?: KeyId | undefined;
  /** True if the machine's models run elsewhere. Undefined leaves what an existing record says. */
  readonly external?: true | undefined;
}

/** A new join line. Its secret is in no record. */
export interface NewJoin {
  readonly line: JoinLine;
  readonly expiresAt: number;
  readonly changed: MachineChanged;
}

/**
 * Makes a join line for a machine, in place of one that was not used. Creates the record if there is none. Throws the
 * fault of a machine that is paired already, and of a site that has no URL or takes no machines.
 */
export async function makeJoin(
  { name, ttlMs, publicUrl, admin, ...granted }: WantedJoin,
  means: MachineMeans,
): Promise<NewJoin> {
  const site = await means.machines.site();
  const origin = publicUrl ?? site.publicUrl;
  if (site.takesMachines === false) {
    throw new Fault("machine_change_refused", {
      message:
        "This site pairs no machines: its gateways have no TRUNKLINE_NATS_SIGNING_KEY, with which they connect machines to NATS. `trunkline nats init` makes one.",
    });
  }
  if (origin === undefined) {
    throw new Fault("machine_change_refused", {
      message:
        "The site has no URL for machines yet: start it with --public https://models.example.org (TRUNKLINE_PUBLIC_URL), by which machines reach it.",
    });
  }
  const id = newToken().slice(0, joinIdCharacters);
  const secret = randomBytes(joinSecretBytes);
  const key = joinKey(secret).toString("base64url");
  const expiresAt = means.clock.wall() + Math.min(ttlMs, joinTtlMsMax);
  const join = { id, key, expiresAt, admin };
  const changed = await changeMachine(name, { action: "machine_paired", join, ...granted }, means);
  const { certificateSha256 } = site;
  const pin = origin.startsWith("https:") ? certificateSha256 : undefined;
  return { line: { origin, id, secret, certificateSha256: pin }, expiresAt, changed };
}

/**
 * Returns the command that runs this version on the machine. The site serves the package to its machines; npm cannot
 * verify the download from a site whose certificate is pinned.
 */
export function machineCommand({ origin, certificateSha256 }: JoinLine): string {
  return certificateSha256 === undefined ? packageCommand(origin, packageJson.version) : `npx -y .${packagePath}`;
}

/**
 * Returns the command to paste on the machine. It hands the line over by standard input: `echo` is part of every shell, so
 * the secret is in the arguments and the environment of no process. The double quotes work in every shell.
 */
export function joinCommand(line: JoinLine): string {
  return `echo "${joinLineText(line)}" | ${machineCommand(line)} agent --join -`;
}

/** A machine's wish to be paired, and where it comes from. */
interface JoinUse {
  readonly request: PairRequest;
  /** The address from which the machine asks. */
  readonly from: string;
  readonly site: string;
}

type JoinVerdict =
  /** No join line has this id, or the proof is wrong. The two are not told apart. */
  | { readonly outcome: "invalid" }
  | { readonly outcome: "expired"; readonly machine: string; readonly expiresAt: number }
  /** A machine with another key has used the line. */
  | { readonly outcome: "used"; readonly machine: string; readonly usedAt: number; readonly usedFrom: string }
  /** The same machine asks again, since it missed the answer. */
  | { readonly outcome: "repeated" }
  | { readonly outcome: "good" };

/** Judges the use of a join line by the record that has it; undefined if no record has it. */
export function judgeJoin(record: MachineRecord | undefined, { request, site }: JoinUse, nowMs: number): JoinVerdict {
  const { join: id, public_key: publicKey, challenge, proof } = request;
  const join = record?.join;
  // An unknown id costs as much time as a wrong proof.
  const key = join === undefined ? noKey : Buffer.from(join.key, "base64url");
  const isProved = provesSame(agentProof(key, { join: id, publicKey, site, challenge }), proof);
  if (record === undefined || join === undefined || join.id !== id || !isProved) return { outcome: "invalid" };
  const { name: machine } = record;
  const { usedAt, usedFrom = "", expiresAt } = join;
  if (usedAt !== undefined) {
    const isSame = record.publicKey === publicKey && record.revokedAt === undefined;
    return isSame ? { outcome: "repeated" } : { outcome: "used", machine, usedAt, usedFrom };
  }
  return nowMs < expiresAt ? { outcome: "good" } : { outcome: "expired", machine, expiresAt };
}

const noKey = randomBytes(32);

export type JoinOutcome =
  | Exclude<JoinVerdict, { readonly outcome: "good" | "repeated" }>
  /** This site accepted the public key before. A machine makes a new key for each pairing. */
  | { readonly outcome: "known-key" }
  /** The admin key that made the line was revoked or disabled. */
  | { readonly outcome: "withdrawn"; readonly machine: string }
  /** An agent that was not paired has the machine's name. */
  | { readonly outcome: "name-used"; readonly machine: string }
  | { readonly outcome: "paired"; readonly isNew: boolean; readonly machine: string; readonly proof: string };

interface JoinDependencies {
  readonly machines: MachineStore;
  readonly keys: Pick<KeyStore, "find">;
  readonly clock: Pick<Clock, "wall">;
  /** Returns true while an agent that was not paired has this name. Of two agents the older one would have to stop. */
  readonly isNameUsed: (machine: string) => boolean;
  /** Id of the request, for the audit trail. */
  readonly requestId: string;
}

/** The site's side of a pairing. Each join line pairs one key; a second use by another key is noted in the record. */
export async function useJoin(
  use: JoinUse,
  { machines, keys, clock, isNameUsed, requestId }: JoinDependencies,
): Promise<JoinOutcome> {
  const { request, site } = use;
  const { join, public_key: publicKey, challenge } = request;
  const from = use.from.slice(0, addressCharactersMax);
  const attempt = async (): Promise<JoinOutcome | "conflict"> => {
    const record = await machines.findByJoin(join);
    const verdict = judgeJoin(record, use, clock.wall());
    if (record?.join === undefined || verdict.outcome === "invalid") return { outcome: "invalid" };
    if (verdict.outcome === "expired") return verdict;
    const { name: machine } = record;
    const means = { machines, clock, actor: { by: `machine ${machine}`, request: requestId } };
    if (verdict.outcome === "used") {
      await attemptMachineChange(record, { name: machine, change: { action: "machine_join_reused", from } }, means);
      return verdict;
    }
    const key = Buffer.from(record.join.key, "base64url");
    const proof = siteProof(key, { join, publicKey, site, challenge, machine });
    if (verdict.outcome === "repeated") return { outcome: "paired", isNew: false, machine, proof };
    const { admin } = record.join;
    if (admin !== undefined && (await isTakenBack(admin, keys))) return { outcome: "withdrawn", machine };
    if (isNameUsed(machine)) return { outcome: "name-used", machine };
    const change = { action: "machine_joined", publicKey, from } as const;
    const { outcome } = await attemptMachineChange(record, { name: machine, change }, means);
    if (outcome === "changed") return { outcome: "paired", isNew: true, machine, proof };
    return outcome === "refused" ? { outcome: "known-key" } : "conflict";
  };
  return retryConflicts(attempt, contended);
}
