import { randomBytes } from "node:crypto";
import { z } from "zod";

const alphabet = Buffer.from("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
export const tokenCharacters = 22;

/** Random characters, unused from `used` to `filled`: to ask the kernel for each token costs ten times as much. */
const pool = Buffer.alloc(8_192);
let filled = 0;
let used = 0;

/**
 * Returns a random name of 22 characters, about 130 bits: for a job, or one boot of a gateway. Safe in subjects and
 * headers.
 */
export function newToken(prefix = ""): string {
  if (filled - used < tokenCharacters) fillPool();
  used += tokenCharacters;
  return prefix + pool.toString("latin1", used - tokenCharacters, used);
}

function fillPool(): void {
  filled = 0;
  used = 0;
  // Bytes from 248, four times 62, would make the first characters more likely than the others.
  for (const byte of randomBytes(pool.length)) if (byte < 248) pool[filled++] = alphabet[byte % 62] ?? 0;
}

export const tokenText = /^[0-9A-Za-z]{22}$/;

/** A machine's name, chosen by its operator. The name is a token of subjects, so no other characters are allowed. */
export const machineName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, "must be 1 to 63 small letters, digits or hyphens, and not begin with a hyphen");

/** Derives a valid machine name from a host name, for operators who did not choose one. */
export function machineNameOf(hostname: string): string {
  const name = hostname
    .toLowerCase()
    .replace(/\..*/, "")
    .replace(/[^a-z0-9-]+/g, "-")
    .replace(/^-+/, "")
    .slice(0, 63);
  return machineName.safeParse(name).success ? name : "machine";
}

/**
 * Identifies one boot of an agent. Epochs sort as text by the time of the boot. The random tail separates two boots of
 * the same millisecond. The newest epoch of a machine is the valid one.
 */
export const epoch = z.string().regex(/^\d{13}-[0-9a-f]{8}$/);

/** Returns an epoch for a boot at `wallMs`, newer than every epoch in `heard`. */
export function newEpoch(wallMs: number, heard: readonly string[] = []): string {
  const newest = Math.max(Math.floor(wallMs), ...heard.map((other) => Number(other.slice(0, 13)) + 1));
  return `${String(newest).padStart(13, "0")}-${randomBytes(4).toString("hex")}`;
}

/** A text without spaces and control characters. */
export const printable = (charactersMax: number): z.ZodString =>
  z
    .string()
    .min(1, "must not be empty")
    .max(charactersMax, `must have at most ${charactersMax} characters`)
    .regex(/^[^\p{C}\p{Z}]*$/u, "must be printable and without spaces");

/** The name of a team, chosen by an admin. */
export const teamName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, "must be 1 to 63 small letters, digits or hyphens, and not begin with a hyphen");

/** The name of an alert target, chosen by an admin. */
export const alertName = teamName;

/** The digest of the issuer and the subject of a person who signs in by OpenID Connect. */
export const personId = z.string().regex(/^[0-9a-f]{64}$/, "must be the id of a person: 64 digits and letters a to f");

/** The name that clients ask for, or a pattern of such names, in which each `*` stands for any run of characters. */
export const routeName = printable(100);
