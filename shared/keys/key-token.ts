import { hash, randomBytes } from "node:crypto";
import { inspect } from "node:util";
import { crc32 } from "node:zlib";
import { z } from "zod";
import type { KeyDigest, Pepper } from "./pepper.ts";

/**
 * A key is `trunkline_<id:12>_<secret:32><checksum:6>` in base62, and an admin key `trunkline_admin_<id>_…`. The id is
 * public and names the record; the secret has 190 bits; the checksum is the CRC-32 of all that stands before it, so
 * that a mistyped or invented key is told from a real one without asking anybody.
 */
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const prefixes: Record<KeyKind, string> = { model: "trunkline_", admin: "trunkline_admin_" };
const idCharacters = 12;
const secretCharacters = 32;
const checksumCharacters = 6;
const tokenCharactersMax = prefixes.admin.length + idCharacters + 1 + secretCharacters + checksumCharacters;
const tokenPattern = /^trunkline_(admin_)?([0-9A-Za-z]{12})_[0-9A-Za-z]{38}$/;

/** `model` keys call models; `admin` keys manage keys, and call none. */
export const keyKinds = ["model", "admin"] as const;
export type KeyKind = (typeof keyKinds)[number];

/** The public part of a key. No other text ever becomes part of a store's command. */
export const keyId = z
  .string()
  .regex(/^[0-9A-Za-z]{12}$/, "must be the 12 letters and digits that follow trunkline_ in a key")
  .brand<"KeyId">();
export type KeyId = z.infer<typeof keyId>;

/** Drawn anew by each process, so that no print means anything elsewhere. */
const printSalt = randomBytes(32).toString("base64url");

/** A key as its holder has it. It gives its text only to who asks for it by name, so that no log line ever does. */
class KeyToken {
  readonly id: KeyId;
  readonly kind: KeyKind;
  readonly #text: string;
  #print: string | undefined;

  /** The text has passed `tokenPattern`, and these are its parts. */
  constructor(text: string, { kind, id }: { readonly kind: KeyKind; readonly id: KeyId }) {
    this.#text = text;
    this.kind = kind;
    this.id = id;
  }

  digest(pepper: Pepper): KeyDigest {
    return pepper.digest(this.#text);
  }

  /** What this process alone calls the key: as good as its digest to tell keys apart, and much sooner made. */
  get print(): string {
    return (this.#print ??= hash("sha256", printSalt + this.#text, "base64url"));
  }

  /** The key itself, to be shown to its holder once. */
  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return "[key]";
  }

  toJSON(): string {
    return "[key]";
  }

  [inspect.custom](): string {
    return "[key]";
  }
}
export type { KeyToken };

export type ParsedKeyToken =
  | { readonly outcome: "parsed"; readonly token: KeyToken }
  | { readonly outcome: "malformed" }
  | { readonly outcome: "checksum_wrong" };

/** A new key, or a new secret for one that there is. */
export function mintKeyToken(kind: KeyKind = "model", id?: KeyId): KeyToken {
  const own = id ?? keyId.parse(randomText(idCharacters));
  const unsigned = `${prefixes[kind]}${own}_${randomText(secretCharacters)}`;
  return new KeyToken(unsigned + checksum(unsigned), { kind, id: own });
}

/** Says whether a text can be a key at all. Costs microseconds whatever the text is. */
export function parseKeyToken(text: string): ParsedKeyToken {
  const parts = text.length > tokenCharactersMax ? null : tokenPattern.exec(text);
  if (parts === null) return { outcome: "malformed" };
  const unsigned = text.slice(0, -checksumCharacters);
  if (checksum(unsigned) !== text.slice(-checksumCharacters)) return { outcome: "checksum_wrong" };
  const [, admin, id] = parts;
  return {
    outcome: "parsed",
    token: new KeyToken(text, { kind: admin === undefined ? "model" : "admin", id: id as KeyId }),
  };
}

function checksum(text: string): string {
  let rest = crc32(text);
  let digits = "";
  while (digits.length < checksumCharacters) {
    digits = alphabet.charAt(rest % alphabet.length) + digits;
    rest = Math.floor(rest / alphabet.length);
  }
  return digits;
}

/** Bytes beyond the last multiple of 62 are thrown away: taking them would make some characters likelier. */
function randomText(characters: number): string {
  const fairBytes = 256 - (256 % alphabet.length);
  let text = "";
  while (text.length < characters) {
    for (const byte of randomBytes(characters - text.length)) {
      if (byte < fairBytes) text += alphabet.charAt(byte % alphabet.length);
    }
  }
  return text;
}
