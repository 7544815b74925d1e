import { z } from "zod";
import { teamName, tokenText } from "./identifiers.ts";

/**
 * The agreement by which `trunkline login` gets a key (RFC 8252, RFC 7636). The command opens the page `loginPath` with a
 * `LoginWish` in its query. The member confirms there, and the browser brings a code to a port of 127.0.0.1. The command
 * sends it to `loginKeyPath` with the verifier, which nobody else has.
 */
export const loginPath = "/console/login";
export const loginKeyPath = `${loginPath}/key`;
/** Revokes the key of a login. */
export const loginEndPath = `${loginPath}/end`;

/** Time for which the code of a confirmed login is good. */
export const loginCodeMs = 60_000;

const secretText = z.string().regex(/^[\w-]{43}$/, "must be 43 letters, digits, hyphens or underscores");

/** The parts of a login that its browser and its command both name. A wish has a port only, so that it leads to no other host. */
const bound = z.strictObject({
  port: z.int().min(1_024).max(65_535).describe("The port of 127.0.0.1 at which the command waits."),
  state: secretText.describe("Comes back to the command beside the code."),
});

export const loginWish = bound.extend({
  challenge: secretText.describe("The SHA-256 of the verifier in base64url."),
  computer: z
    .string()
    .max(60)
    .regex(/^[^\p{C}\p{Zl}\p{Zp}]+$/u, "must be one line of printable characters")
    .describe("The name of the computer that asks."),
  team: teamName.describe("The team of the key."),
});
export type LoginWish = Readonly<z.infer<typeof loginWish>>;

export const loginProof = bound.extend({ code: z.string().regex(tokenText), verifier: secretText });
export type LoginProof = Readonly<z.infer<typeof loginProof>>;

/** The key of a login, among what the site says of each new key. */
export const loginKey = z.object({ id: z.string(), key: z.string(), team: z.string(), expires_at: z.iso.datetime() });
