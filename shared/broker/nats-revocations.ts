import { z } from "zod";
import type { Clock } from "../process/clock.ts";
import { exitCodes, StartFailure } from "../process/lifecycle.ts";
import { newToken } from "../protocol/identifiers.ts";
import { decodeJson } from "../protocol/frame-payload.ts";
import { Nkey } from "../protocol/nkey.ts";
import type { Broker } from "./broker.ts";
import { readClaims, signClaims, type SignedClaims } from "./nats-credentials.ts";

/** A key of a machine whose credentials no longer open a connection to NATS. */
export interface RevokedKey {
  readonly publicKey: string;
  /** Time of the revocation, in milliseconds since 1970. */
  readonly at: number;
  /** True if credentials that were issued later are good: the machine was renamed. */
  readonly onlyEarlier?: boolean;
}

interface Options {
  /** A connection with a user of the system account (`system.creds`). */
  readonly system: Broker;
  /** Seed of the operator (TRUNKLINE_NATS_OPERATOR_KEY). */
  readonly operatorKey: string;
  /** Public key of the account of gateways and machines. */
  readonly account: string;
  readonly clock: Clock;
}

/**
 * NATS refuses JWTs that were issued up to the time of a revocation. This far behind the revocation, no clock of a
 * gateway that issued one can be ahead of it.
 */
const aheadSeconds = 100 * 365 * 86_400;
/**
 * The most revoked keys in an account: its JWT has to fit into one message. The oldest are dropped first. Their JWTs
 * have expired long since, and no gateway issues another.
 */
const revokedKeysMax = 5_000;
const answerWaitMs = 2_000;
/** Another gateway may push the account at the same time, and undo this push. */
const attemptsMax = 5;

const revocations = z.record(z.string(), z.number()).catch({});
const updated = z.object({ data: z.object({ code: z.literal(200) }) });

/** Puts revoked keys into the account's JWT, which NATS keeps. NATS cuts their connections at once. */
export class NatsRevocations {
  readonly #options: Options;
  readonly #operator: Nkey;

  constructor(options: Options) {
    this.#options = options;
    const operator = Nkey.fromSeed("O", options.operatorKey);
    if (operator === undefined) {
      throw new StartFailure(
        exitCodes.config,
        "TRUNKLINE_NATS_OPERATOR_KEY must be the seed of an operator, which begins with SO: the file operator.seed that `trunkline nats init` made.",
      );
    }
    this.#operator = operator;
  }

  /** Resolves when NATS has all these keys as revoked. Rejects with the reason when NATS did not take them. */
  async revoke(keys: readonly RevokedKey[]): Promise<void> {
    for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
      const claims = await this.#account();
      const revoked = revocations.parse(claims.nats["revocations"]);
      const missing = keys.filter((key) => (revoked[key.publicKey] ?? 0) < issuedUntil(key));
      if (missing.length === 0) return;
      for (const key of missing) revoked[key.publicKey] = issuedUntil(key);
      await this.#push(claims, newest(revoked));
    }
    throw new Error(`NATS has another account after ${attemptsMax} updates`);
  }

  async #account(): Promise<SignedClaims> {
    const { account } = this.#options;
    const jwt = Buffer.from(await this.#ask(`$SYS.REQ.ACCOUNT.${account}.CLAIMS.LOOKUP`, new Uint8Array())).toString();
    const claims = readClaims(jwt);
    if (claims?.sub !== account) throw new Error("NATS does not know the account of TRUNKLINE_NATS_CREDS");
    if (claims.iss === this.#operator.publicKey) return claims;
    // NATS would write such an account to its folder, and refuse everybody after a restart.
    throw new Error("TRUNKLINE_NATS_OPERATOR_KEY is the key of another operator than this account's");
  }

  async #push({ sub, name, nats, iat }: SignedClaims, revoked: Readonly<Record<string, number>>): Promise<void> {
    // A server that starts, or joins its cluster, prefers the later date.
    const issuedAt = Math.max(Math.floor(this.#options.clock.wall() / 1_000), iat + 1);
    const jwt = signClaims({ sub, name, nats: { ...nats, revocations: revoked } }, this.#operator, issuedAt);
    const answer = await this.#ask("$SYS.REQ.CLAIMS.UPDATE", Buffer.from(jwt));
    if (decodeJson(updated, answer) !== undefined) return;
    throw new Error(
      `NATS refuses an account with another revoked key: ${Buffer.from(answer).toString().slice(0, 500)}`,
    );
  }

  async #ask(subject: string, data: Uint8Array): Promise<Uint8Array> {
    const { system, clock } = this.#options;
    const inbox = newToken("_INBOX.");
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
    const answers = system.subscribe(inbox, (message) =>
      message.noResponders ? reject(new Error("NATS does not run in operator mode")) : resolve(message.data),
    );
    const timer = clock.after(answerWaitMs, () => reject(new Error(`NATS does not answer within ${answerWaitMs} ms`)));
    try {
      if (system.publish(subject, data, { reply: inbox }) === "disconnected") throw new Error("NATS cannot be reached");
      return await promise;
    } finally {
      timer.cancel();
      answers.end();
    }
  }
}

/** Returns the time in seconds up to which NATS refuses what was issued. */
function issuedUntil({ at, onlyEarlier }: RevokedKey): number {
  return Math.floor(at / 1_000) + (onlyEarlier === true ? 0 : aheadSeconds);
}

function newest(revoked: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  const entries = Object.entries(revoked).toSorted(([, one], [, other]) => other - one);
  return Object.fromEntries(entries.slice(0, revokedKeysMax));
}
