import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { machineName } from "./identifiers.ts";
import { isNkey, isSignedBy, Nkey } from "./nkey.ts";

/**
 * The agreement by which a machine joins a site and later proves that it is that machine.
 *
 * The join line holds a secret that is good once and that no message carries. Agent and site prove it to each other by
 * an HMAC over the machine's new public key, the site and a challenge. The agent keeps the private half of its key. At
 * each connect it signs a nonce of the gateway together with the site's id and a prefix of its own, so that no proof
 * is good at another site, or as an answer to anything else.
 */

/** Path of the tunnel, and of everything else that only agents ask for. */
export const tunnelPath = "/agent/v1";
export const challengePath = `${tunnelPath}/challenge`;
export const pairPath = `${tunnelPath}/pair`;

/** Path of a short stream of known times, by which `trunkline doctor` finds proxies that hold streams back. */
export const streamProbePath = `${tunnelPath}/stream`;
export const streamProbe = { events: 4, everyMs: 250 } as const;

const joinSecretBytes = 16;
export const joinId = z.string().regex(/^[0-9A-Za-z]{12}$/);
const base64url = (bytes: number): z.ZodString =>
  z.string().regex(new RegExp(`^[\\w-]{${Math.ceil((bytes * 8) / 6)}}$`));
/** Identifies a site for good, whatever its URL. */
export const siteId = z.string().regex(/^[0-9A-Za-z]{22}$/);
/** The public half of a machine's key: an nkey of a user. */
export const machineKey = z.string().regex(/^U[A-Z2-7]{55}$/);
const opaque = z.string().regex(/^[\w.-]{16,256}$/);
const proof = base64url(32);
/** The key of the proofs (`joinKey`) in base64url. */
export const joinKeyText = base64url(32);

/** A gateway's answer at `challengePath`. */
export const challengeAnswer = z.object({ site: siteId, challenge: opaque });
export type ChallengeAnswer = Readonly<z.infer<typeof challengeAnswer>>;

/** An agent's request at `pairPath`. */
export const pairRequest = z.object({
  join: joinId,
  public_key: machineKey.refine(isNkey, "must be the public key of a user (nkey)"),
  challenge: opaque,
  proof,
});
export type PairRequest = Readonly<z.infer<typeof pairRequest>>;

/** A gateway's answer at `pairPath`. Its proof shows that the site knows the join line's secret too. */
export const pairAnswer = z.object({ machine: machineName, site: siteId, proof });
export type PairAnswer = Readonly<z.infer<typeof pairAnswer>>;

/** The line that an operator pastes on the machine, in parts. */
export interface JoinLine {
  /** The site's URL without a path. */
  readonly origin: string;
  readonly id: string;
  readonly secret: Uint8Array;
  /** SHA-256 of the site's certificate in base64url, for a certificate that no public authority signed. */
  readonly certificateSha256?: string | undefined;
}

export function joinLineText({ origin, id, secret, certificateSha256 }: JoinLine): string {
  const pin = certificateSha256 === undefined ? "" : `.${certificateSha256}`;
  return `${origin}/#${id}.${Buffer.from(secret).toString("base64url")}${pin}`;
}

const fragment = z.tuple([joinId, base64url(joinSecretBytes)], base64url(32));

/** Parses a join line. Returns undefined for anything else, also for `http://` to another host than this one. */
export function parseJoinLine(text: string): JoinLine | undefined {
  const url = URL.parse(text.trim());
  if (url === null || url.pathname !== "/" || url.search !== "" || url.username !== "" || url.password !== "") return;
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isLoopback(url.hostname))) return;
  const parts = fragment.safeParse(url.hash.slice(1).split("."));
  if (!parts.success || parts.data.length > 3) return;
  const [id, secret, certificateSha256] = parts.data;
  return { origin: url.origin, id, secret: Buffer.from(secret, "base64url"), certificateSha256 };
}

export function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d{1,3}){3}$/.test(hostname);
}

/** The URL by which clients and machines reach a site, without a path. Clear text stays on this host. */
export const publicOrigin: z.ZodType<string, string> = z.string().transform((text, context) => {
  const url = URL.parse(text);
  const isOrigin = url !== null && [url.origin, `${url.origin}/`].includes(url.href);
  if (isOrigin && (url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname)))) {
    return url.origin;
  }
  context.addIssue(
    "must be https:// and a host, without a path, such as https://models.example.org; http:// is for 127.0.0.1 only",
  );
  return z.NEVER;
});

/** Derives the key of the proofs from the secret of a join line. The site keeps this key and not the secret. */
export function joinKey(secret: Uint8Array): Buffer {
  return createHmac("sha256", secret).update("trunkline join key 1").digest();
}

interface SignedJoin extends Pick<PairRequest, "join" | "challenge"> {
  readonly publicKey: string;
  readonly site: string;
}

/** The agent's proof that it knows the join line's secret. */
export function agentProof(key: Uint8Array, { join, publicKey, site, challenge }: SignedJoin): string {
  return proofOf(key, ["trunkline pair 1", join, publicKey, site, challenge]);
}

/** The site's proof that it knows the join line's secret, and has paired this key under this name. */
export function siteProof(
  key: Uint8Array,
  { join, publicKey, site, challenge, machine }: SignedJoin & { readonly machine: string },
): string {
  return proofOf(key, ["trunkline paired 1", join, publicKey, site, challenge, machine]);
}

function proofOf(key: Uint8Array, parts: readonly string[]): string {
  return createHmac("sha256", key).update(parts.join("\n")).digest("base64url");
}

/** Compares two proofs in constant time. */
export function provesSame(one: string, other: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}

/** A machine's key pair as text, as the agent keeps it. */
export type MachineKeyPair = Pick<Nkey, "publicKey" | "seed">;

export function newMachineKeyPair(): MachineKeyPair {
  const { publicKey, seed } = Nkey.make("U");
  return { publicKey, seed };
}

/** Connects of one machine to one gateway in a minute. */
export const connectsPerMinuteMax = 30;

/**
 * Reasons for which a gateway refuses or closes a tunnel. After the first two the credential never works again, and
 * after `too_often` it works again in the time that is told.
 */
const tunnelRefusals = [
  "machine_unknown",
  "machine_revoked",
  "wrong_proof",
  "replaced",
  "unavailable",
  "too_often",
] as const;
export type TunnelRefusal = (typeof tunnelRefusals)[number];
export interface ToldRefusal {
  readonly refusal: TunnelRefusal;
  /** Time after which the machine may connect again. */
  readonly retryMs?: number | undefined;
}

/** The client library of NATS recognises a refused credential by these words. */
const tunnelRefused = "Authorization Violation: ";

/** Returns a refusal as the text of a `-ERR`. */
export function refusalText(refusal: TunnelRefusal, retryMs?: number): string {
  return `${tunnelRefused}${refusal}${retryMs === undefined ? "" : ` for ${retryMs} ms`}`;
}

/** Reads a refusal in the text of a `-ERR`. Returns undefined for any other text. */
export function refusalIn(text: string): ToldRefusal | undefined {
  if (!text.startsWith(tunnelRefused)) return undefined;
  const [, word, ms] = /^(\w+)(?: for (\d{1,6}) ms)?$/.exec(text.slice(tunnelRefused.length)) ?? [];
  const refusal = tunnelRefusals.find((each) => each === word);
  return refusal && { refusal, ...(ms !== undefined && { retryMs: Number(ms) }) };
}

interface Signed {
  /** Each purpose has a prefix of its own, so that one signature never stands for the other. */
  readonly purpose: "connect" | "credential";
  readonly site: string;
  readonly challenge: string;
}

/** Signs a challenge of the site with the machine's key. */
export function signChallenge(seed: string, signed: Signed): string {
  const key = Nkey.fromSeed("U", seed);
  if (key === undefined) throw new TypeError("the seed of the machine's key is damaged");
  return key.sign(textOf(signed)).toString("base64url");
}

/** Returns true if the machine with this public key signed the challenge, for this site and this purpose. */
export function provesMachine(publicKey: string, signature: string, signed: Signed): boolean {
  return isSignedBy(publicKey, textOf(signed), Buffer.from(signature, "base64url"));
}

function textOf({ purpose, site, challenge }: Signed): Uint8Array {
  return Buffer.from(`trunkline ${purpose} 1\n${site}\n${challenge}`);
}

/** Path at which agents up to 0.2.0 ask for a credential of NATS. It answers `direct_unavailable`, and they use the tunnel. */
export const credentialPath = `${tunnelPath}/credential`;
