import { crc32 } from "node:zlib";
import type { KeyToken } from "#shared/keys/key-token.ts";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** A text that passes for a key with the same id but another secret: what somebody who knows the format can make. */
export function withAnotherSecret(token: KeyToken): string {
  const unsigned = `trunkline_${token.id}_${"x".repeat(32)}`;
  const digits = Array.from({ length: 6 }, (_, place) => Math.floor(crc32(unsigned) / 62 ** (5 - place)) % 62);
  return unsigned + digits.map((digit) => alphabet.charAt(digit)).join("");
}
