import { createHash } from "node:crypto";
import { z } from "zod";
import type { Nkey } from "../protocol/nkey.ts";
import type { Grants } from "../protocol/subjects.ts";

/**
 * JWTs of NATS' operator mode. `@nats-io/jwt` is not used: it dates every JWT by the clock of the host, and a NATS
 * server that starts prefers the account of the latest date.
 */
export interface Claims {
  /** Public key of the operator, account or user. */
  readonly sub: string;
  readonly name: string;
  /** Time in seconds since 1970 at which the JWT ends. */
  readonly exp?: number | undefined;
  readonly nats: Readonly<Record<string, unknown>> & { readonly type: "operator" | "account" | "user" };
}

/** Signs claims. `issuedAt` is in seconds since 1970. */
export function signClaims(claims: Claims, signer: Nkey, issuedAt: number): string {
  const { sub, name, exp, nats } = claims;
  const body = { iat: issuedAt, iss: signer.publicKey, sub, name, exp, nats: { ...nats, version: 2 } };
  const jti = createHash("sha256").update(JSON.stringify(body)).digest("base64url");
  const text = `${base64url({ typ: "JWT", alg: "ed25519-nkey" })}.${base64url({ jti, ...body })}`;
  return `${text}.${signer.sign(Buffer.from(text)).toString("base64url")}`;
}

function base64url(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString("base64url");
}

const signedClaims = z.looseObject({
  iat: z.int(),
  iss: z.string(),
  sub: z.string(),
  name: z.string(),
  nats: z.looseObject({ type: z.enum(["operator", "account", "user"]) }),
});
export type SignedClaims = z.infer<typeof signedClaims>;

/** Reads the claims of a JWT without verifying its signature. Returns undefined for any other text. */
export function readClaims(jwt: string): SignedClaims | undefined {
  try {
    return signedClaims.parse(JSON.parse(Buffer.from(jwt.split(".")[1] ?? "", "base64url").toString()));
  } catch {
    return undefined;
  }
}

/** The grants of a user or of a role, in the form of a JWT, without limits of NATS' own. */
export function permissions({ publish, subscribe }: Grants): Readonly<Record<string, unknown>> {
  return { pub: { allow: publish }, sub: { allow: subscribe }, ...userUnlimited };
}

const userUnlimited = { subs: -1, data: -1, payload: -1 };

/** Returns a `.creds` file: the JWT of a user and the private half of its key. */
export function credsText(jwt: string, { seed }: Nkey): string {
  const block = (title: string, text: string): string =>
    `-----BEGIN ${title}-----\n${text}\n------END ${title}------\n`;
  return `${block("NATS USER JWT", jwt)}\n${block("USER NKEY SEED", seed)}`;
}
