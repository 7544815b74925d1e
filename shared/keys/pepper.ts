import { hash, randomBytes } from "node:crypto";
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

/** Block size of SHA-256. */
const blockBytes = 64;

const fingerprintLabel = "trunkline pepper fingerprint";
const cacheSaltLabel = "trunkline cache salt";

/**
 * The secret that turns keys into digests. It is stored outside the key store. A reader of the store cannot use its
 * keys, and a writer of the store cannot create any.
 */
class Pepper {
  readonly fingerprint: PepperFingerprint;
  /** The inner and outer key that HMAC (RFC 2104) derives from one key. */
  readonly #inner: Buffer;
  readonly #outer: Buffer;

  constructor(text: string) {
    const bytes = Buffer.from(text, "utf8");
    const key = bytes.byteLength > blockBytes ? hash("sha256", bytes, "buffer") : bytes;
    this.#inner = padded(key, 0x36);
    this.#outer = padded(key, 0x5c);
    this.fingerprint = pepperFingerprint.parse(this.#hmac(fingerprintLabel).slice(0, 16));
  }

  digest(keyText: string): KeyDigest {
    return this.#hmac(keyText) as KeyDigest;
  }

  /**
   * Returns the salt that separates the data a runtime caches for this key from that of other keys. The salt is the
   * same at every gateway. A machine that has the salt and the id of one key cannot derive the salt of another key.
   */
  cacheSalt(keyId: string): string {
    return this.#hmac(`${cacheSaltLabel} ${keyId}`).slice(0, 32);
  }

  /** Every request needs an HMAC. Two one-shot hashes take a fifth of the time of an HMAC object. */
  #hmac(text: string): string {
    const inner = hash("sha256", Buffer.concat([this.#inner, Buffer.from(text, "utf8")]), "buffer");
    return hash("sha256", Buffer.concat([this.#outer, inner]), "hex");
  }
}

function padded(key: Buffer, pad: number): Buffer {
  const block = Buffer.alloc(blockBytes, pad);
  for (const [place, byte] of key.entries()) block[place] = byte ^ pad;
  return block;
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
