import { unescape } from "node:querystring";

const keyText = /trunkline_(?:admin_|viewer_|link_|session_)?[0-9A-Za-z]{6,}_[0-9A-Za-z]+/g;
const bearerText = /(bearer\s+)[^\s"\\]+/gi;
/** The secret of a join line, behind the line's id. */
const joinText = /(#[0-9A-Za-z]{12})\.[\w-]{22}/g;
/** The private half of a machine's key, or of a key of NATS: of a user, an account or an operator. */
const seedText = /\bS[UAO][A-Z2-7]{56}\b/g;

/** Matches the beginning of a secret. Nearly no line has one, so most lines need only this scan. */
const suspect = /trunkline_|bearer\s|#[0-9A-Za-z]{12}\.|S[UAO][A-Z2-7]{56}/i;

/** A part of a URL. A key has none of the characters that separate two parts. */
const urlPart = /[^\s"\\/?&=#]+/g;
/** Bounds the rounds of percent-decoding: a URL may be encoded again on its way. */
const decodingsMax = 4;

/** Removes keys, bearer tokens, join lines' secrets and private keys of machines and NATS from a text. */
export function scrub(text: string): string {
  const plain = suspect.test(text) ? scrubPlain(text) : text;
  return plain.includes("%") ? plain.replace(urlPart, scrubEncoded) : plain;
}

function scrubPlain(text: string): string {
  const plain = text.replace(keyText, "[key]").replace(bearerText, "$1[key]");
  return plain.replace(joinText, "$1.[secret]").replace(seedText, "[key]");
}

/** Replaces a URL part that holds a percent-encoded key as a whole; no decoded text ever gets into a line. */
function scrubEncoded(part: string): string {
  let decoded = part;
  for (let times = 0; times < decodingsMax && decoded.includes("%"); times += 1) {
    decoded = unescape(decoded);
    if (suspect.test(decoded) && scrubPlain(decoded) !== decoded) return "[key]";
  }
  return part;
}

/**
 * Replaces control characters in a text from clients or other hosts. Such a text can then neither end its line nor
 * control the terminal.
 */
export function onOneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, "?");
}
