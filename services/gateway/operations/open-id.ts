import { hash } from "node:crypto";
import * as client from "openid-client";
import { z } from "zod";
import type { OpenIdRefusal } from "#shared/admin/session-operations.ts";
import type { ProvedPerson } from "#shared/records/change-person.ts";
import type { Peppers } from "#shared/keys/pepper.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { isLoopback, provesSame } from "#shared/protocol/pairing.ts";
import { subjectCharactersMax } from "#shared/records/person-record.ts";
import { sessionRoles } from "#shared/records/session-record.ts";
import type { IdempotencyRecords } from "../jobs/idempotency-records.ts";

export interface OpenIdSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string | undefined;
  /** The claim that decides the role, and the role of each of its values; `*` for any value. */
  readonly claim: string;
  readonly roles: ReadonlyMap<string, GivenRole>;
}

/** The roles that a claim may give, the least first. A member has the member pages alone. */
export const givenRoles = ["member", ...sessionRoles] as const;
export type GivenRole = (typeof givenRoles)[number];

/** A person whom the provider has proved. */
export interface Proved {
  /** The name for lists and the trail. It ends with the print of the person. */
  readonly name: string;
  /** The digest of the issuer and the subject, which is one person's alone. */
  readonly digest: string;
  /** The claims about the person, as the provider signed them. */
  readonly claims: client.IDToken;
  /** When the provider's word ends, in milliseconds since 1970. */
  readonly untilMs: number;
}

/** The checks of a sign-in that is under way. The browser that began it keeps them in a cookie. */
const checks = z.object({ state: z.string(), nonce: z.string(), verifier: z.string() });

/** Time for which a sign-in may be under way. */
export const openIdMs = 10 * 60_000;

interface OpenIdParts {
  readonly peppers: Peppers;
  /** Claims each state that came back, so that no gateway takes it again. */
  readonly usedStates: IdempotencyRecords;
  readonly clock: Pick<Clock, "wall">;
  readonly log: Pick<Log, "warn">;
}

/**
 * Signs people in by OpenID Connect: authorization code with PKCE. A state is signed for all gateways and is taken once, so
 * that the provider is asked for sign-ins alone that this site began.
 */
export class OpenId {
  readonly #settings: OpenIdSettings;
  readonly #parts: OpenIdParts;
  #discovered: Promise<client.Configuration> | undefined;

  constructor(settings: OpenIdSettings, parts: OpenIdParts) {
    this.#settings = settings;
    this.#parts = parts;
  }

  /** The host of the provider, as the sign-in page names it. */
  get host(): string {
    return new URL(this.#settings.issuer).host;
  }

  /** Returns where the browser goes to sign in, and what it keeps meanwhile. Undefined if the provider is away. */
  async begin(callback: string): Promise<{ readonly url: URL; readonly kept: string } | undefined> {
    const config = await this.#discover();
    if (config === undefined) return undefined;
    const { peppers, clock } = this.#parts;
    const text = `${Math.round(clock.wall() + openIdMs).toString(36)}.${client.randomState()}`;
    const begun = {
      state: `${text}.${peppers.current.signChallenge(`openid ${text}`)}`,
      nonce: client.randomNonce(),
      verifier: client.randomPKCECodeVerifier(),
    };
    const url = client.buildAuthorizationUrl(config, {
      redirect_uri: callback,
      scope: "openid profile email",
      code_challenge: await client.calculatePKCECodeChallenge(begun.verifier),
      code_challenge_method: "S256",
      state: begun.state,
      nonce: begun.nonce,
    });
    return { url, kept: Buffer.from(JSON.stringify(begun)).toString("base64url") };
  }

  /** Returns the person that the provider sent back, or why there is none. `current` is the whole URL of the request. */
  async finish(current: URL, kept: string | undefined): Promise<Proved | OpenIdRefusal> {
    const begun = checks.safeParse(readKept(kept)).data;
    if (begun === undefined || current.searchParams.get("state") !== begun.state) return "not_begun";
    if (!(await this.#spend(begun.state))) return "not_begun";
    const config = await this.#discover();
    if (config === undefined) return "away";
    let claims: client.IDToken | undefined;
    try {
      const tokens = await client.authorizationCodeGrant(config, current, {
        pkceCodeVerifier: begun.verifier,
        expectedState: begun.state,
        expectedNonce: begun.nonce,
        idTokenExpected: true,
      });
      claims = tokens.claims();
    } catch (error) {
      this.#parts.log.warn({ reason: whyRefused(error) }, "a sign-in by OpenID was refused");
      if (error instanceof TypeError || Object(error).code === "OAUTH_TIMEOUT") return "away";
    }
    if (claims === undefined) return "refused";
    if (claims.sub.length > subjectCharactersMax) {
      const reason = `the subject has ${claims.sub.length} characters, and at most ${subjectCharactersMax} (subjectCharactersMax) are taken`;
      this.#parts.log.warn({ reason }, "a sign-in by OpenID was refused");
      return "long_subject";
    }
    return { ...identityOf(this.#settings.issuer, claims), claims, untilMs: claims.exp * 1_000 };
  }

  /** Returns the highest role of a person. */
  roleOf({ claims }: Proved): GivenRole | undefined {
    return roleIn(claims, this.#settings);
  }

  /** Returns a person as a record of people takes them. */
  personOf({ claims }: Proved): ProvedPerson {
    const { issuer, claim } = this.#settings;
    const email = claims["email_verified"] === true ? claims["email"] : undefined;
    return {
      issuer,
      subject: claims.sub,
      called: calledIn(claims),
      email: typeof email === "string" ? email : undefined,
      claims: valuesIn(claims, claim),
    };
  }

  /** Logs that a person was sent away. */
  warnOfNoRole({ claims: { sub: subject } }: Proved): void {
    this.#parts.log.warn(
      { subject },
      "a person without a role tried to sign in: TRUNKLINE_OIDC_ROLES names the values of the claim TRUNKLINE_OIDC_CLAIM that have one, and an address must be verified",
    );
  }

  /** Returns true for exactly one call with a state that a gateway of this site made within `openIdMs`. */
  async #spend(state: string): Promise<boolean> {
    const { peppers, usedStates, clock } = this.#parts;
    const end = state.lastIndexOf(".");
    const text = state.slice(0, end);
    const signatures = peppers.challengeSignatures(`openid ${text}`);
    const isSigned = signatures.some((each) => provesSame(each, state.slice(end + 1)));
    if (!isSigned || clock.wall() >= Number.parseInt(text, 36)) return false;
    const owner = newToken();
    // Records are bounded by key. The random end of a state spreads them, so that no flood of them fills the bound.
    const name = { keyId: `openid-${text.slice(-2)}`, name: text };
    return (await usedStates.put(name, { owner, digest: "" }, { forMs: openIdMs }))?.owner === owner;
  }

  async #discover(): Promise<client.Configuration | undefined> {
    const { issuer, clientId, clientSecret } = this.#settings;
    const url = new URL(issuer);
    // Only a provider on this host, as in tests, may go without TLS.
    const execute = url.protocol === "http:" && isLoopback(url.hostname) ? [client.allowInsecureRequests] : [];
    this.#discovered ??= client.discovery(url, clientId, clientSecret, undefined, { execute });
    try {
      return await this.#discovered;
    } catch (error) {
      this.#discovered = undefined;
      this.#parts.log.warn({ reason: whyRefused(error), issuer }, "the OpenID provider does not answer");
      return undefined;
    }
  }
}

/** Returns the highest role that a value of the claim has. An address that the provider has not verified has none. */
export function roleIn(
  claims: Readonly<Record<string, unknown>>,
  { claim, roles }: Pick<OpenIdSettings, "claim" | "roles">,
): GivenRole | undefined {
  const given = valuesIn(claims, claim).flatMap((value) => roles.get(value) ?? roles.get("*") ?? []);
  return givenRoles.toReversed().find((role) => given.includes(role));
}

/** Returns the values of a claim: of a text or of a list. An object is none. */
function valuesIn(claims: Readonly<Record<string, unknown>>, claim: string): readonly string[] {
  const isUnproved = claim === "email" && String(claims["email_verified"]) === "false";
  const values = isUnproved ? [] : [claims[claim] ?? []].flat();
  return values.filter((each) => typeof each !== "object").map(String);
}

/** Returns the end of a person's name: the beginning of their digest. Words before it change, such as an address. */
export function printOf(digest: string): string {
  return ` (OpenID ${digest.slice(0, 12)})`;
}

/** Returns the digest of a person, and their name: what the provider calls them, and their print. */
function identityOf(issuer: string, claims: client.IDToken): Pick<Proved, "digest" | "name"> {
  const plain = calledIn(claims)
    .slice(0, 60)
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, "");
  const digest = hash("sha256", `${issuer} ${claims.sub}`);
  return { digest, name: plain + printOf(digest) };
}

function calledIn(claims: client.IDToken): string {
  return String([claims["email"], claims["preferred_username"], claims.sub].find((each) => typeof each === "string"));
}

function readKept(kept: string | undefined): unknown {
  try {
    return JSON.parse(Buffer.from(kept ?? "", "base64url").toString());
  } catch {
    return undefined;
  }
}

/** Returns the reason of a refusal on one short line. The provider's words may come from whoever sent the browser back. */
function whyRefused(error: unknown): string {
  const { message, error: code, error_description: words, cause } = Object(error);
  return [message, code, words, Object(cause).message]
    .filter((each) => typeof each === "string")
    .join(": ")
    .slice(0, 200);
}
