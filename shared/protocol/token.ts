import { randomFillSync } from "node:crypto";

const alphabet = Buffer.from("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
export const tokenCharacters = 22;

/** Characters that nobody has had yet, as bytes. */
const pool = Buffer.alloc(4096);
let filled = 0;
let used = 0;

/** A random name of 22 characters, about 130 bits: a job, or one boot of a gateway. Safe in subjects and headers. */
export function newToken(): string {
  if (filled - used < tokenCharacters) fill();
  used += tokenCharacters;
  return pool.toString("latin1", used - tokenCharacters, used);
}

/** Six bits of each random byte are a character, unless they are above the last one. */
function fill(): void {
  randomFillSync(pool);
  used = 0;
  filled = 0;
  for (const byte of pool) {
    const character = alphabet[byte & 63];
    if (character !== undefined) pool[filled++] = character;
  }
}

export const tokenText = /^[0-9A-Za-z]{22}$/;
