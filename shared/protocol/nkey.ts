import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from "node:crypto";

/** The owner of a key: operator, account or user. It is the first letter of the public key. */
export type NkeyKind = "O" | "A" | "U";

/**
 * An Ed25519 key in the text form of NATS. Node computes the signatures: `@nats-io/nkeys` does it in JavaScript, and
 * one signature there takes as long as hundreds of Node's. A gateway makes several for each machine that connects.
 */
export class Nkey {
  readonly publicKey: string;
  /** The private half as text. */
  readonly seed: string;
  readonly #key: KeyObject;

  private constructor(kind: NkeyKind, secret: Uint8Array) {
    this.#key = createPrivateKey({ key: Buffer.concat([pkcs8Head, secret]), format: "der", type: "pkcs8" });
    const { x = "" } = createPublicKey(this.#key).export({ format: "jwk" });
    const first = letters.indexOf(kind) << 3;
    this.publicKey = textOf([first, ...Buffer.from(x, "base64url")]);
    // The letter S, then the letter of the kind: each has five bits.
    this.seed = textOf([seedFirst | (first >> 5), (first & 31) << 3, ...secret]);
  }

  static make(kind: NkeyKind): Nkey {
    const { d = "" } = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" });
    return new Nkey(kind, Buffer.from(d, "base64url"));
  }

  /** Returns the key with this seed; undefined for any other text, also for the seed of another kind. */
  static fromSeed(kind: NkeyKind, seed: string): Nkey | undefined {
    const bytes = seed.startsWith(`S${kind}`) ? bytesOf(seed) : undefined;
    return bytes?.byteLength === 2 + keyBytes ? new Nkey(kind, bytes.subarray(2)) : undefined;
  }

  sign(text: Uint8Array): Buffer {
    return sign(null, text, this.#key);
  }
}

/** Returns true if the text is a whole public key: its checksum is right. */
export function isNkey(publicKey: string): boolean {
  return bytesOf(publicKey)?.byteLength === 1 + keyBytes;
}

/** Returns true if the holder of the public key signed the text. */
export function isSignedBy(publicKey: string, text: Uint8Array, signature: Uint8Array): boolean {
  const bytes = bytesOf(publicKey);
  if (bytes?.byteLength !== 1 + keyBytes) return false;
  const x = Buffer.from(bytes.subarray(1)).toString("base64url");
  return verify(null, text, createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" }), signature);
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const seedFirst = letters.indexOf("S") << 3;
const keyBytes = 32;
/** The DER encoding of an Ed25519 private key, up to the key itself. */
const pkcs8Head = Buffer.from("302e020100300506032b657004220420", "hex");

/** Encodes bytes and their checksum in base32. */
function textOf(bytes: readonly number[]): string {
  const sum = checksum(bytes);
  let bits = "";
  for (const byte of [...bytes, sum & 255, sum >> 8]) bits += byte.toString(2).padStart(8, "0");
  return (bits.match(/.{1,5}/g) ?? []).map((five) => letters[Number.parseInt(five.padEnd(5, "0"), 2)]).join("");
}

/** Decodes a text of `textOf`. Returns undefined if the checksum is wrong. */
function bytesOf(text: string): Uint8Array | undefined {
  if (!/^[A-Z2-7]{4,100}$/.test(text)) return undefined;
  const bits = Array.from(text, (letter) => letters.indexOf(letter).toString(2).padStart(5, "0")).join("");
  const bytes = (bits.match(/.{8}/g) ?? []).map((eight) => Number.parseInt(eight, 2));
  const [low = 0, high = 0] = bytes.splice(-2);
  return checksum(bytes) === ((high << 8) | low) ? Uint8Array.from(bytes) : undefined;
}

/** CRC-16 with the polynomial 0x1021, as XMODEM has it. */
function checksum(bytes: readonly number[]): number {
  let sum = 0;
  for (const byte of bytes) {
    sum ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) sum = ((sum << 1) ^ (sum & 0x8000 ? 0x1021 : 0)) & 0xffff;
  }
  return sum;
}
