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
  type SessionToken,
} from "../keys/session-token.ts";
import type { KeyRecord } from "./key-record.ts";
import type { UnreadRecord } from "./key-store.ts";
import type { SignIns } from "./sign-in.ts";

/** A viewer reads. An operator changes machines, models and routes too, and an admin also keys and sessions. */
export const sessionRoles = ["viewer", "operator", "admin"] as const;
export type SessionRole = (typeof sessionRoles)[number];

/** The fields of every record of a session. Times are milliseconds since 1970. */
const ofEverySession = {
  id: sessionId,
  digest: keyDigest,
  pepper: pepperFingerprint,
  createdAt: z.int().nonnegative(),
  expiresAt: z.int().nonnegative(),
  /** The address and the User-Agent of the browser that signed in. */
  address: z.string().max(100).optional(),
  agent: z.string().max(200).optional(),
};

/**
 * The record of a sign-in link or of a session of the console. It stands for the admin or viewer key that made the link or signed in, and
 * ends with that key.
 */
export const sessionRecord = z.strictObject({
  ...ofEverySession,
  kind: z.enum(["link", "session"]),
  /** The session's own role: a link of an admin key may open a session that may do less. */
  role: z.enum(sessionRoles),
  key: keyId,
  /** Set if the key is that of the person who signed in. A link opens a session of somebody else's key. */
  own: z.literal(true).optional(),
});
export type SessionRecord = Readonly<z.infer<typeof sessionRecord>>;

/** The record of a member's session at the public port. It stands for a person, by their digest, and for no key. */
const memberSession = z.strictObject({
  ...ofEverySession,
  kind: z.literal("member"),
  person: z.string().length(64),
});
export type MemberSession = Readonly<z.infer<typeof memberSession>>;

export const storedSession = z.discriminatedUnion("kind", [sessionRecord, memberSession]);
export type StoredSession = SessionRecord | MemberSession;

/** True for a link or a session of the console. */
export function isOfConsole(stored: StoredSession): stored is SessionRecord {
  return stored.kind !== "member";
}

/** Stores sign-in links and sessions beside the keys. It fails as a `KeyStore` does. */
export interface SessionStore extends SignIns {
  /** Stores a new record, and drops those that have expired. */
  write(record: StoredSession, nowMs: number): Promise<void>;
  find(id: SessionId): Promise<StoredSession | undefined>;
  /** Removes a record. Returns true for exactly one of several calls. */
  remove(id: SessionId): Promise<boolean>;
  /** Returns all records, the oldest first, perhaps with some that have expired. */
  list(unread?: UnreadRecord[]): Promise<readonly StoredSession[]>;
}

export const linkMs = 10 * 60_000;
export const sessionMs = 12 * 3_600_000;
/** Links and sessions of one key, and sessions of one member. Beyond it the oldest ends. */
export const sessionsPerKeyMax = 100;

interface Dependencies {
  readonly sessions: SessionStore;
  readonly peppers: Peppers;
  readonly clock: { wall(): number };
}

/** Makes a link or a session that stands for a key. Its token is shown to its holder once. */
export async function makeSession(
  wish: {
    readonly kind: SessionRecord["kind"];
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
  await keepSession(record, sessions);
  return { token, record };
}

/** Makes a session of a member. */
export async function makeMemberSession(
  { person, address, agent = "" }: Pick<MemberSession, "person" | "address" | "agent">,
  { sessions, peppers, clock }: Dependencies,
): Promise<{ readonly token: SessionToken; readonly record: MemberSession }> {
  const createdAt = clock.wall();
  const token = mintSessionToken("member");
  const record: MemberSession = {
    id: token.id,
    kind: "member",
    digest: digestSession(token, [person], peppers.current),
    pepper: peppers.current.fingerprint,
    person,
    createdAt,
    expiresAt: createdAt + sessionMs,
    address: address?.slice(0, 100),
    agent: agent.slice(0, 200),
  };
  await keepSession(record, sessions);
  return { token, record };
}

/** Stores a new session, and ends the oldest beyond `sessionsPerKeyMax` of its key or member. */
async function keepSession(record: StoredSession, sessions: SessionStore): Promise<void> {
  const own = (await sessions.list()).filter((each) => holderOf(each) === holderOf(record));
  for (const { id } of own.slice(0, Math.max(0, own.length + 1 - sessionsPerKeyMax))) await sessions.remove(id);
  await sessions.write(record, record.createdAt);
}

export function holderOf(stored: StoredSession): string {
  return isOfConsole(stored) ? stored.key : stored.person;
}

/** Returns the record of a valid token of this kind. Undefined for every other text; the reason is not told. */
export async function findSession(
  text: string,
  kind: SessionRecord["kind"],
  dependencies: Dependencies,
): Promise<SessionRecord | undefined> {
  const found = await findStored(text, kind, dependencies);
  return found && isOfConsole(found) ? found : undefined;
}

/** Returns the record of a member's session, as `findSession` does. */
export async function findMemberSession(text: string, dependencies: Dependencies): Promise<MemberSession | undefined> {
  const found = await findStored(text, "member", dependencies);
  return found?.kind === "member" ? found : undefined;
}

async function findStored(
  text: string,
  kind: SessionKind,
  { sessions, peppers, clock }: Dependencies,
): Promise<StoredSession | undefined> {
  const token = parseSessionToken(text);
  if (token?.kind !== kind) return undefined;
  const record = await sessions.find(token.id);
  if (record === undefined || record.kind !== kind || clock.wall() >= record.expiresAt) return undefined;
  const grants = isOfConsole(record) ? [record.role, record.key] : [record.person];
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
