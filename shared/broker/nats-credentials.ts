import { readFileSync } from "node:fs";
import type { Clock } from "../process/clock.ts";
import { exitCodes, StartFailure } from "../process/lifecycle.ts";
import { Nkey } from "../protocol/nkey.ts";
import { readClaims, signClaims } from "./nats-claims.ts";

/** A user's credential for NATS in operator mode. */
export interface NatsCredential {
  readonly jwt: string;
  readonly key: Nkey;
  /** The remedy when NATS refuses it, for people. */
  readonly remedy: string;
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
    this.#signer = signerOf(signingKey);
    this.account = accountOf(credentialsFile);
    this.#clock = clock;
  }

  /**
   * Makes a user with a key of its own. The user does not expire, because its key stays in the memory of this process.
   */
  newUser(machine: string): NatsCredential {
    const key = Nkey.make("U");
    return { jwt: this.mint(machine, key.publicKey), key, remedy };
  }

  /**
   * Signs a JWT for the key of a machine. Without a lifetime it is good until the key is revoked. It is dated later than
   * `afterMs`, up to which NATS may refuse the key's JWTs.
   */
  mint(
    machine: string,
    publicKey: string,
    { lifetimeMs, afterMs = 0 }: { readonly lifetimeMs?: number; readonly afterMs?: number } = {},
  ): string {
    const nowSeconds = Math.floor(this.#clock.wall() / 1_000);
    const issuedAt = Math.max(nowSeconds, Math.floor(afterMs / 1_000) + 1);
    const exp = lifetimeMs === undefined ? undefined : nowSeconds + Math.floor(lifetimeMs / 1_000);
    // Any limit in the user's own JWT would make NATS refuse it: all come from the role.
    const nats = { type: "user", issuer_account: this.account } as const;
    return signClaims({ sub: publicKey, name: machine, exp, nats }, this.#signer, issuedAt);
  }
}

function signerOf(signingKey: string): Nkey {
  const signer = Nkey.fromSeed("A", signingKey);
  if (signer !== undefined) return signer;
  throw new StartFailure(
    exitCodes.config,
    "TRUNKLINE_NATS_SIGNING_KEY must be the seed of an account's signing key, which begins with SA: the file machines.seed that `trunkline nats init` made.",
  );
}

function accountOf(credentialsFile: string | undefined): string {
  const account = credentialsFile === undefined ? undefined : accountIn(credentialsFile);
  if (account !== undefined) return account;
  throw new StartFailure(
    exitCodes.config,
    "TRUNKLINE_NATS_SIGNING_KEY needs TRUNKLINE_NATS_CREDS beside it: the file gateway.creds that `trunkline nats init` made, which names the account.",
  );
}

/** Returns the public key of the account of a `.creds` file, or undefined. */
function accountIn(credentialsFile: string): string | undefined {
  let text: string;
  try {
    text = readFileSync(credentialsFile, "utf8");
  } catch {
    return undefined;
  }
  const claims = readClaims(/^ey[\w.-]+$/m.exec(text)?.[0] ?? "");
  const account = claims?.nats["issuer_account"] ?? claims?.iss;
  return typeof account === "string" && account.startsWith("A") ? account : undefined;
}
