import { randomFillSync } from "node:crypto";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const pool = Buffer.alloc(4096);
let used = pool.length;

/** A random name of 22 characters, about 130 bits: a job, or one boot of a gateway. Safe in subjects and headers. */
export function newToken(): string {
  let token = "";
  while (token.length < 22) {
    if (used === pool.length) {
      randomFillSync(pool);
      used = 0;
    }
    const byte = pool.readUInt8(used++) & 63;
    if (byte < alphabet.length) token += alphabet.charAt(byte);
  }
  return token;
}

export const tokenText = /^[0-9A-Za-z]{22}$/;
