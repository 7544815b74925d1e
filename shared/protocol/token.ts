import { randomFillSync } from "node:crypto";

const alphabet = Buffer.from("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
export const tokenCharacters = 22;
/** So long may a word be that a token stands behind. */
const prefixCharactersMax = 16;

/** Characters that nobody has had yet, as bytes. Before them is what was used up, and room for a prefix at least. */
const pool = Buffer.alloc(16 * 1024);
let filled = 0;
let used = 0;

/**
 * A random name of 22 characters, about 130 bits: a job, or one boot of a gateway. Safe in subjects and headers. One with a
 * prefix is made in one piece: JSON takes twice as long over a text that was put together.
 */
export function newToken(prefix = ""): string {
  if (filled - used < tokenCharacters) fill();
  const from = used - prefix.length;
  if (prefix !== "") pool.write(prefix, from, "latin1");
  used += tokenCharacters;
  return pool.toString("latin1", from, used);
}

/** Six bits of each random byte are a character, unless they are above the last one. */
function fill(): void {
  randomFillSync(pool, prefixCharactersMax);
  used = prefixCharactersMax;
  filled = prefixCharactersMax;
  for (let at = prefixCharactersMax; at < pool.length; at += 1) {
    const character = alphabet[(pool[at] ?? 0) & 63];
    if (character !== undefined) pool[filled++] = character;
  }
}

export const tokenText = /^[0-9A-Za-z]{22}$/;
