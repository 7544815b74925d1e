import { randomBytes } from "node:crypto";
import { z } from "zod";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
export const tokenCharacters = 22;

/**
 * Returns a random name of 22 characters, about 130 bits: for a job, or one boot of a gateway. Safe in subjects and
 * headers.
 */
export function newToken(prefix = ""): string {
  let token = "";
  while (token.length < tokenCharacters) {
    // Four times 62 characters: bytes beyond would make the first characters more likely than the others.
    for (const byte of randomBytes(tokenCharacters)) if (byte < 248) token += alphabet[byte % 62];
  }
  return prefix + token.slice(0, tokenCharacters);
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
    .replace(/\..*$/, "")
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
