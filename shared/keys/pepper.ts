import { createHmac, hkdfSync, randomBytes } from "node:crypto";
import { z } from "zod";

export const pepperBytesMin = 32;

/** The stored digest of a key: HMAC-SHA-256 under the pepper, in hexadecimal. */
export const keyDigest = z
  .string()
  .regex(/^[0-9a-f]{64}$/)
  .brand<"KeyDigest">();
export type KeyDigest = z.infer<typeof keyDigest>;

/** Identifies the pepper that made a digest. It reveals nothing about the pepper itself. */
export const pepperFingerprint = z
  .string()
  .regex(/^[0-9a-f]{16}$/)
  .brand<"PepperFingerprint">();
export type PepperFingerprint = z.infer<typeof pepperFingerprint>;

/**
 * The secret that turns keys into digests. It is stored outside the key store. A reader of the store cannot use its
 * keys, and a writer of the store cannot create any.
 */
class Pepper {
  readonly fingerprint: PepperFingerprint;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
    this.fingerprint = pepperFingerprint.parse(this.#hmac("trunkline pepper fingerprint").slice(0, 16));
  }

  digest(keyText: string): KeyDigest {
    return this.#hmac(keyText) as KeyDigest;
  }

  /**
   * Returns the salt that separates the data a runtime caches for this key from that of other keys. The salt is the
   * same at every gateway. A machine that has the salt and the id of one key cannot derive the salt of another key.
   */
  cacheSalt(keyId: string): string {
    return this.#hmac(`trunkline cache salt ${keyId}`).slice(0, 32);
  }

  /** Signs a challenge of this site, so that every gateway recognises it without a store. */
  signChallenge(text: string): string {
    return this.#hmac(`trunkline challenge ${text}`);
  }

  /**
   * Returns the key with which one boot of a gateway seals its placements for the other gateways. A key of its own for
   * each boot keeps the number of messages under one key far below the bound of AES-GCM with random nonces.
   */
  placementsKey(gateway: string): Buffer {
    return this.#hmacBytes(`trunkline placements ${gateway}`);
  }

  /**
   * Returns the key that encrypts the stored responses of an API key. A key of its own for each API key keeps the number
   * of messages under one key far below the bound of AES-GCM with random nonces.
   */
  responsesKey(keyId: string): Buffer {
    return Buffer.from(hkdfSync("sha256", this.#text, "", `trunkline stored responses ${keyId}`, 32));
  }

  /** Returns the digest under which an end user of an API key is known. Without the pepper nobody can try names. */
  endUserDigest(keyId: string, name: string): string {
    return this.#hmac(`trunkline end user ${keyId} ${name}`).slice(0, 32);
  }

  /** Returns the key that encrypts the names of the end users of an API key. */
  endUsersKey(keyId: string): Buffer {
    return Buffer.from(hkdfSync("sha256", this.#text, "", `trunkline end users ${keyId}`, 32));
  }

  /** The key that encrypts the URLs and signing secrets of alert targets. */
  get alertsKey(): Buffer {
    return Buffer.from(hkdfSync("sha256", this.#text, "", "trunkline alert targets", 32));
  }

  /** The seed with which all gateways of the site hash prompts, an int32. Nobody else can hash a guess. */
  get promptSeed(): number {
    return this.#hmacBytes("trunkline prompt seed").readInt32LE(0);
  }

  #hmac(text: string): string {
    return this.#hmacBytes(text).toString("hex");
  }

  #hmacBytes(text: string): Buffer {
    return createHmac("sha256", this.#text).update(text).digest();
  }
}
export type { Pepper };

/** A pepper as an operator configures it. Parsing is the only way to create a `Pepper`. */
export const pepperText = z
  .string()
  .refine(
    (text) => Buffer.byteLength(text) >= pepperBytesMin,
    `must be a secret of at least ${pepperBytesMin} bytes, for instance from: openssl rand -base64 32`,
  )
  .transform((text) => new Pepper(text));

export function newPepperText(): string {
  return randomBytes(pepperBytesMin).toString("base64url");
}

/**
 * The peppers of a process: the one that makes digests, and optionally another one that is also accepted. While a
 * pepper is being replaced, every process has both, in either order.
 */
export class Peppers {
  readonly current: Pepper;
  readonly #also: Pepper | undefined;

  constructor(current: Pepper, also?: Pepper) {
    this.current = current;
    this.#also = also;
  }

  knows(fingerprint: PepperFingerprint): boolean {
    return fingerprint === this.current.fingerprint || fingerprint === this.#also?.fingerprint;
  }

  /** Returns the possible signatures of a challenge. */
  challengeSignatures(text: string): OfEach<string> {
    return this.#each((pepper) => pepper.signChallenge(text));
  }

  /** Returns the keys under which a gateway's placements may be sealed. */
  placementsKeys(gateway: string): OfEach<Buffer> {
    return this.#each((pepper) => pepper.placementsKey(gateway));
  }

  /** Returns the keys under which the responses of an API key may be encrypted. */
  responsesKeys(keyId: string): OfEach<Buffer> {
    return this.#each((pepper) => pepper.responsesKey(keyId));
  }

  /** Returns the keys under which the names of the end users of an API key may be encrypted. */
  endUsersKeys(keyId: string): OfEach<Buffer> {
    return this.#each((pepper) => pepper.endUsersKey(keyId));
  }

  /** Returns the keys under which the secrets of alert targets may be encrypted. */
  alertsKeys(): OfEach<Buffer> {
    return this.#each((pepper) => pepper.alertsKey);
  }

  /** Returns the possible digests of a key. */
  digestsOf(token: { digest(pepper: Pepper): KeyDigest }): OfEach<KeyDigest> {
    return this.#each((pepper) => token.digest(pepper));
  }

  #each<Made>(make: (pepper: Pepper) => Made): OfEach<Made> {
    return this.#also === undefined ? [make(this.current)] : [make(this.current), make(this.#also)];
  }
}

/** One for each pepper. The one of the current pepper comes first. */
type OfEach<Made> = readonly [Made, ...Made[]];
