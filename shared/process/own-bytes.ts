const encoder = new TextEncoder();

/**
 * Encodes a text into an `ArrayBuffer` of its own, for long-lived bytes. `Buffer.from` allocates from a shared pool,
 * and a long-lived slice keeps all 64 KiB of the pool alive.
 */
export function ownBytes(text: string): Uint8Array {
  return encoder.encode(text);
}
