import { z } from "zod";
import { randomText } from "./key-token.ts";
import type { Pepper, Peppers, KeyDigest } from "./pepper.ts";
import { timingSafeEqual } from "node:crypto";

/**
 * `link`: signs in once, and becomes a session. `session`: the cookie of a browser that has signed in to the console.
 * `member`: that of one that has signed in at the public port.
 */
export const sessionKinds = ["link", "session", "member"] as const;
export type SessionKind = (typeof sessionKinds)[number];

/** The public part of a token, which names its record. */
export const sessionId = z
  .string()
  .regex(/^[0-9A-Za-z]{12}$/, "must be the 12 letters and digits by which the session is listed")
  .brand<"SessionId">();
export type SessionId = z.infer<typeof sessionId>;

/** A token is `trunkline_<kind>_<id:12>_<secret:32>` in base62. The secret has 190 bits. */
const tokenPattern = /^trunkline_(link|session|member)_([0-9A-Za-z]{12})_[0-9A-Za-z]{32}$/;

/** The token of a sign-in link or of a session, as its holder has it. */
export interface SessionToken {
  readonly kind: SessionKind;
  readonly id: SessionId;
  readonly text: string;
}

export function mintSessionToken(kind: SessionKind): SessionToken {
  const id = sessionId.parse(randomText(12));
  return { kind, id, text: `trunkline_${kind}_${id}_${randomText(32)}` };
}

export function parseSessionToken(text: string): SessionToken | undefined {
  const [, kind, id] = tokenPattern.exec(text) ?? [];
  return id === undefined ? undefined : { kind: kind as SessionKind, id: id as SessionId, text };
}

/**
 * Returns the digest of a token together with what it grants, so that a writer of the store, who does not know the pepper,
 * cannot give a session another key or role.
 */
export function digestSession({ text }: SessionToken, grants: readonly string[], pepper: Pepper): KeyDigest {
  return pepper.digest([text, ...grants].join(" "));
}

/** Returns true if the digest is that of this token and grants. The comparison takes the same time for every wrong one. */
export function isDigestOf(
  digest: KeyDigest,
  {
    token,
    grants,
    peppers,
  }: { readonly token: SessionToken; readonly grants: readonly string[]; readonly peppers: Peppers },
): boolean {
  const offered = peppers.digestsOf({ digest: (pepper) => digestSession(token, grants, pepper) });
  return offered.some((each) => timingSafeEqual(Buffer.from(each, "hex"), Buffer.from(digest, "hex")));
}
