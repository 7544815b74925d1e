import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  type Auth,
  type Authenticator,
  AuthorizationError,
  credsAuthenticator,
  UserAuthenticationExpiredError,
} from "@nats-io/nats-core";
import { z } from "zod";
import type { Clock } from "../process/clock.ts";
import { exitCodes, StartFailure } from "../process/lifecycle.ts";
import { jsonIn } from "../protocol/frame-payload.ts";
import { Nkey } from "../protocol/nkey.ts";
import type { Grants } from "../protocol/subjects.ts";

/** A user's credential for NATS in operator mode. */
export interface NatsCredential {
  readonly jwt: string;
  readonly key: Nkey;
  /** The remedy when NATS refuses it, for people. */
  readonly remedy: string;
}

/** The library signs in JavaScript, which takes hundreds of times as long. */
export function signedNonce({ jwt, key }: NatsCredential, nonce = ""): Auth {
  return { jwt, nkey: key.publicKey, sig: key.sign(Buffer.from(nonce)).toString("base64url") };
}

export function isCredentialRefused(error: unknown): boolean {
  return error instanceof AuthorizationError || error instanceof UserAuthenticationExpiredError;
}

export function readCredentials(file: string): Authenticator {
  try {
    return credsAuthenticator(readFileSync(file));
  } catch (error) {
    throw new StartFailure(
      exitCodes.config,
      `TRUNKLINE_NATS_CREDS: the file ${file} cannot be read; name a .creds file that this user may read.`,
      { cause: error },
    );
  }
}

interface MinterOptions {
  /** Seed of the site's signing key for machines (TRUNKLINE_NATS_SIGNING_KEY). */
  readonly signingKey: string;
  /** A `.creds` file of the same account: it names the account. */
  readonly credentialsFile: string | undefined;
  readonly clock: Pick<Clock, "wall">;
}

const remedy =
  "TRUNKLINE_NATS_SIGNING_KEY must be a signing key of the account in TRUNKLINE_NATS_CREDS, as `trunkline nats init` made both";

/**
 * Makes users of NATS for machines. The account's JWT says what they may do: the role of the signing key grants to each
 * user the subjects of the machine of its name.
 */
export class MachineMinter {
  /** Public key of the account of gateways and machines. */
  readonly account: string;
  readonly #signer: Nkey;
  readonly #clock: Pick<Clock, "wall">;

  constructor({ signingKey, credentialsFile, clock }: MinterOptions) {
    const signer = Nkey.fromSeed("A", signingKey);
    if (signer === undefined) {
      throw new StartFailure(
        exitCodes.config,
        "TRUNKLINE_NATS_SIGNING_KEY must be the seed of an account's signing key, which begins with SA: the file machines.seed that `trunkline nats init` made.",
      );
    }
    this.#signer = signer;
    this.account = accountOf(credentialsFile);
    this.#clock = clock;
  }

  /**
   * Makes a user with a key of its own. The user does not expire, because its key stays in the memory of this process.
   */
  newUser(machine: string): NatsCredential {
    const key = Nkey.make("U");
    // Any limit in the user's own JWT would make NATS refuse it: all come from the role.
    const nats = { type: "user", issuer_account: this.account } as const;
    const issuedAt = Math.floor(this.#clock.wall() / 1_000);
    return { jwt: signClaims({ sub: key.publicKey, name: machine, nats }, this.#signer, issuedAt), key, remedy };
  }
}

/** Returns the public key of the account of a `.creds` file. */
function accountOf(credentialsFile = ""): string {
  try {
    const claims = readIssuer(/^ey[\w.-]+$/m.exec(readFileSync(credentialsFile, "utf8"))?.[0] ?? "");
    const account = claims?.nats.issuer_account ?? claims?.iss;
    if (account?.startsWith("A")) return account;
  } catch {
    // The failure below names the file.
  }
  throw new StartFailure(
    exitCodes.config,
    "TRUNKLINE_NATS_SIGNING_KEY needs TRUNKLINE_NATS_CREDS beside it: the file gateway.creds that `trunkline nats init` made, which names the account.",
  );
}

/**
 * JWTs of NATS' operator mode. `@nats-io/jwt` is not used: it dates every JWT by the clock of the host, and a NATS
 * server that starts prefers the account of the latest date.
 */
export interface Claims {
  /** Public key of the operator, account or user. */
  readonly sub: string;
  readonly name: string;
  readonly nats: Readonly<Record<string, unknown>> & { readonly type: "operator" | "account" | "user" };
}

/** Signs claims. `issuedAt` is in seconds since 1970. */
export function signClaims(claims: Claims, signer: Nkey, issuedAt: number): string {
  const { sub, name, nats } = claims;
  const body = { iat: issuedAt, iss: signer.publicKey, sub, name, nats: { ...nats, version: 2 } };
  const jti = createHash("sha256").update(JSON.stringify(body)).digest("base64url");
  const text = `${base64url({ typ: "JWT", alg: "ed25519-nkey" })}.${base64url({ jti, ...body })}`;
  return `${text}.${signer.sign(Buffer.from(text)).toString("base64url")}`;
}

function base64url(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString("base64url");
}

const issuedBy = z.object({ iss: z.string(), nats: z.object({ issuer_account: z.string().optional() }) });

/** Reads the issuer of a JWT without verifying its signature. Returns undefined for any other text. */
function readIssuer(jwt: string): z.infer<typeof issuedBy> | undefined {
  return issuedBy.safeParse(jsonIn(Buffer.from(jwt.split(".")[1] ?? "", "base64url").toString())).data;
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
