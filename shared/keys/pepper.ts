import { createHmac, createSecretKey, randomBytes, type KeyObject } from "node:crypto";
import { z } from "zod";

export const pepperBytesMin = 32;

/** What a store keeps of a key: HMAC-SHA-256 under the pepper, in hexadecimal. */
export const keyDigest = z
  .string()
  .regex(/^[0-9a-f]{64}$/)
  .brand<"KeyDigest">();
export type KeyDigest = z.infer<typeof keyDigest>;

/** Which pepper a digest was made with. It says nothing about the pepper itself. */
export const pepperFingerprint = z
  .string()
  .regex(/^[0-9a-f]{16}$/)
  .brand<"PepperFingerprint">();
export type PepperFingerprint = z.infer<typeof pepperFingerprint>;

const fingerprintLabel = "trunkline pepper fingerprint";

/**
 * The secret that turns keys into digests. It lives outside the store: who can read the store cannot use its keys,
 * and who can write to it cannot make any.
 */
class Pepper {
  readonly fingerprint: PepperFingerprint;
  readonly #key: KeyObject;

  constructor(text: string) {
    this.#key = createSecretKey(text, "utf8");
    this.fingerprint = pepperFingerprint.parse(this.#hmac(fingerprintLabel).slice(0, 16));
  }

  digest(keyText: string): KeyDigest {
    return keyDigest.parse(this.#hmac(keyText));
  }

  #hmac(text: string): string {
    return createHmac("sha256", this.#key).update(text).digest("hex");
  }
}
export type { Pepper };

/** A pepper as an operator gives it; parsing is the only way to a Pepper. */
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
