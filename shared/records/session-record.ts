import { z } from "zod";
import { Fault } from "../fault/fault.ts";
import { keyId } from "../keys/key-token.ts";
import { keyDigest, pepperFingerprint, type Peppers } from "../keys/pepper.ts";
import {
  digestSession,
  isDigestOf,
  mintSessionToken,
  parseSessionToken,
  sessionId,
  type SessionId,
  type SessionKind,
  sessionKinds,
  type SessionToken,
} from "../keys/session-token.ts";
import type { KeyRecord } from "./key-record.ts";
import type { UnreadRecord } from "./key-store.ts";
import type { SignIns } from "./sign-in.ts";

/** A viewer reads. An operator changes machines, models and routes too, and an admin also keys and sessions. */
export const sessionRoles = ["viewer", "operator", "admin"] as const;
export type SessionRole = (typeof sessionRoles)[number];

/**
 * The record of a sign-in link or of a session. It stands for the admin or viewer key that made the link or signed in, and
 * ends with that key. Times are milliseconds since 1970.
 */
export const sessionRecord = z.strictObject({
  id: sessionId,
  kind: z.enum(sessionKinds),
  digest: keyDigest,
  pepper: pepperFingerprint,
  /** The session's own role: a link of an admin key may open a session that may do less. */
  role: z.enum(sessionRoles),
  key: keyId,
  createdAt: z.int().nonnegative(),
  expiresAt: z.int().nonnegative(),
  /** The address and the User-Agent of the browser that signed in. */
  address: z.string().max(100).optional(),
  agent: z.string().max(200).optional(),
  /** Set if the key is that of the person who signed in. A link opens a session of somebody else's key. */
  own: z.literal(true).optional(),
});
export type SessionRecord = Readonly<z.infer<typeof sessionRecord>>;

/** Stores sign-in links and sessions beside the keys. It fails as a `KeyStore` does. */
export interface SessionStore extends SignIns {
  /** Stores a new record, and drops those that have expired. */
  write(record: SessionRecord, nowMs: number): Promise<void>;
  find(id: SessionId): Promise<SessionRecord | undefined>;
  /** Removes a record. Returns true for exactly one of several calls. */
  remove(id: SessionId): Promise<boolean>;
  /** Returns all records, the oldest first, perhaps with some that have expired. */
  list(unread?: UnreadRecord[]): Promise<readonly SessionRecord[]>;
}

export const linkMs = 10 * 60_000;
export const sessionMs = 12 * 3_600_000;
/** Links and sessions of one key. Beyond it the oldest ends. */
export const sessionsPerKeyMax = 100;

interface Dependencies {
  readonly sessions: SessionStore;
  readonly peppers: Peppers;
  readonly clock: { wall(): number };
}

/** Makes a link or a session that stands for a key. Its token is shown to its holder once. */
export async function makeSession(
  wish: {
    readonly kind: SessionKind;
    readonly role: SessionRole;
    readonly key: Pick<KeyRecord, "id" | "expiresAt">;
    readonly address?: string | undefined;
    readonly agent?: string | undefined;
    readonly own?: boolean;
  },
  { sessions, peppers, clock }: Dependencies,
): Promise<{ readonly token: SessionToken; readonly record: SessionRecord }> {
  const { kind, role, key, address, agent, own: isOwn } = wish;
  const nowMs = clock.wall();
  const token = mintSessionToken(kind);
  const record: SessionRecord = {
    id: token.id,
    kind,
    digest: digestSession(token, [role, key.id], peppers.current),
    pepper: peppers.current.fingerprint,
    role,
    key: key.id,
    createdAt: nowMs,
    expiresAt: Math.min(nowMs + (kind === "link" ? linkMs : sessionMs), key.expiresAt),
    ...(address !== undefined && { address: address.slice(0, 100) }),
    ...(agent !== undefined && { agent: agent.slice(0, 200) }),
    ...(isOwn && { own: true }),
  };
  const own = (await sessions.list()).filter((each) => each.key === key.id);
  for (const { id } of own.slice(0, Math.max(0, own.length + 1 - sessionsPerKeyMax))) await sessions.remove(id);
  await sessions.write(record, nowMs);
  return { token, record };
}

/** Returns the record of a valid token of this kind. Undefined for every other text; the reason is not told. */
export async function findSession(
  text: string,
  kind: SessionKind,
  { sessions, peppers, clock }: Dependencies,
): Promise<SessionRecord | undefined> {
  const token = parseSessionToken(text);
  if (token?.kind !== kind) return undefined;
  const record = await sessions.find(token.id);
  if (record === undefined || record.kind !== kind || clock.wall() >= record.expiresAt) return undefined;
  const grants = [record.role, record.key];
  return isDigestOf(record.digest, { token, grants, peppers }) ? record : undefined;
}

/** True if a session may end the other sessions and links of its key: an admin's, or that of the person whose key it is. */
export function mayEndOthers({ role, own }: SessionRecord): boolean {
  return role === "admin" || own === true;
}

export function sessionUnknown(): Fault {
  return new Fault("session_not_found", { message: "There is no session with this id, or it has ended.", param: "id" });
}

/** Returns a sign-in link. The token is in the fragment, which no browser sends: no log and no prefetch has it. */
export function signInUrl(consoleUrl: string, token: string): string {
  return `${consoleUrl}#sign-in=${token}`;
}
