import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

const cipher = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;
/** Bytes that a sealed text has more than the text. */
export const sealBytes = nonceBytes + tagBytes;

/** Encrypts bytes under a name, so that they open only with the same key and the same name. */
export function seal(bytes: Uint8Array, key: Buffer, name: string): Buffer {
  const nonce = randomBytes(nonceBytes);
  const sealing = createCipheriv(cipher, key, nonce, { authTagLength: tagBytes }).setAAD(Buffer.from(name));
  return Buffer.concat([nonce, sealing.update(bytes), sealing.final(), sealing.getAuthTag()]);
}

/** The bytes of an opened seal, and the place of its key among those that were tried. */
interface Unsealed {
  readonly bytes: Buffer;
  readonly at: number;
}

/** Opens a seal with one of the keys. Undefined if it was altered, or made with another key or under another name. */
export function unseal(sealed: Uint8Array, keys: readonly Buffer[], name: string): Unsealed | undefined {
  if (sealed.byteLength < sealBytes) return undefined;
  for (const [at, key] of keys.entries()) {
    const opening = createDecipheriv(cipher, key, sealed.subarray(0, nonceBytes), { authTagLength: tagBytes })
      .setAAD(Buffer.from(name))
      .setAuthTag(sealed.subarray(-tagBytes));
    const bytes = opening.update(sealed.subarray(nonceBytes, -tagBytes));
    try {
      opening.final();
      return { bytes, at };
    } catch {}
  }
  return undefined;
}
