import { hash, randomBytes } from "node:crypto";
import { inspect } from "node:util";
import { crc32 } from "node:zlib";
import { z } from "zod";
import type { KeyDigest, Pepper } from "./pepper.ts";

/**
 * A key is `trunkline_<id:12>_<secret:32><checksum:6>` in base62, an admin key `trunkline_admin_<id>_…`, a viewer key
 * `trunkline_viewer_<id>_…`. The id is public and names the record. The secret has 190 bits. The checksum is the CRC-32
 * of everything before it, so that a mistyped or invented key is detected without a look-up.
 */
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const prefixes: Record<KeyKind, string> = {
  model: "trunkline_",
  admin: "trunkline_admin_",
  viewer: "trunkline_viewer_",
};
const idCharacters = 12;
const secretCharacters = 32;
const checksumCharacters = 6;
const tokenCharactersMax = prefixes.viewer.length + idCharacters + 1 + secretCharacters + checksumCharacters;
const tokenPattern = /^trunkline_(admin_|viewer_)?([0-9A-Za-z]{12})_[0-9A-Za-z]{38}$/;

/**
 * `model` keys call models. `admin` keys use the admin API and call no models. `viewer` keys only read the admin API.
 */
export const keyKinds = ["model", "admin", "viewer"] as const;
export type KeyKind = (typeof keyKinds)[number];

/** The public part of a key. No other text ever becomes part of a store's command. */
export const keyId = z
  .string()
  .regex(/^[0-9A-Za-z]{12}$/, "must be the 12 letters and digits that follow trunkline_ in a key")
  .brand<"KeyId">();
export type KeyId = z.infer<typeof keyId>;

/** Each process generates its own salt, so that a print is meaningless in any other process. */
const printSalt = randomBytes(32).toString("base64url");

/** A key as its holder has it. Only `reveal` returns its text, so that no log line ever contains it. */
class KeyToken {
  readonly id: KeyId;
  readonly kind: KeyKind;
  readonly #text: string;
  #print: string | undefined;

  /** `text` has the form of `tokenPattern`; `kind` and `id` are its parts. */
  constructor(text: string, { kind, id }: { readonly kind: KeyKind; readonly id: KeyId }) {
    this.#text = text;
    this.kind = kind;
    this.id = id;
  }

  digest(pepper: Pepper): KeyDigest {
    return pepper.digest(this.#text);
  }

  /**
   * A salted hash that identifies the key within this process. It distinguishes keys as well as the digest does, and is
   * much faster to compute.
   */
  get print(): string {
    return (this.#print ??= hash("sha256", printSalt + this.#text, "base64url"));
  }

  /** Returns the text of the key, to be shown to its holder once. */
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

type ParsedKeyToken =
  | { readonly outcome: "parsed"; readonly token: KeyToken }
  | { readonly outcome: "malformed" }
  | { readonly outcome: "checksum_wrong" };

/** Generates a new key, or a new secret for the existing key `id`. */
export function mintKeyToken(kind: KeyKind = "model", id?: KeyId): KeyToken {
  const own = id ?? keyId.parse(randomText(idCharacters));
  const unsigned = `${prefixes[kind]}${own}_${randomText(secretCharacters)}`;
  return new KeyToken(unsigned + checksum(unsigned), { kind, id: own });
}

/** Checks the form and the checksum of a key. The check takes microseconds for any text. */
export function parseKeyToken(text: string): ParsedKeyToken {
  const parts = text.length > tokenCharactersMax ? null : tokenPattern.exec(text);
  if (parts === null) return { outcome: "malformed" };
  const unsigned = text.slice(0, -checksumCharacters);
  if (checksum(unsigned) !== text.slice(-checksumCharacters)) return { outcome: "checksum_wrong" };
  const [, kind, id] = parts;
  return {
    outcome: "parsed",
    token: new KeyToken(text, { kind: (kind?.slice(0, -1) ?? "model") as KeyKind, id: id as KeyId }),
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

/**
 * Returns random base62 characters. Bytes beyond the last multiple of 62 are discarded: using them would make some
 * characters more likely.
 */
export function randomText(characters: number): string {
  const fairBytes = 256 - (256 % alphabet.length);
  let text = "";
  while (text.length < characters) {
    for (const byte of randomBytes(characters - text.length)) {
      if (byte < fairBytes) text += alphabet.charAt(byte % alphabet.length);
    }
  }
  return text;
}
