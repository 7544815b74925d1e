import { issuersOf } from "#shared/records/key-lineage.ts";
import { authUnavailable } from "../keys/known-keys.ts";
import { checkKey } from "#shared/records/judge-key.ts";
import { isIP } from "node:net";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import type { Actor } from "#shared/records/audit-entry.ts";
import { judgeProven, type KeyRecord, type KeyVerdict } from "#shared/records/key-record.ts";
import type { KeyStore } from "#shared/records/key-store.ts";
import {
  findSession,
  type SessionRecord,
  type SessionRole,
  type SessionStore,
} from "#shared/records/session-record.ts";
import { type KeyToken, parseKeyToken } from "#shared/keys/key-token.ts";
import type { Peppers } from "#shared/keys/pepper.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { BadKeys } from "../keys/bad-keys.ts";
import { bearerText, validKey } from "../keys/authenticate.ts";

/**
 * Refuses requests whose Host header is an unknown name. With DNS rebinding, any web page can point its own host name
 * at this port. The browser then lets the page read the answers. The Host header of such a request still has the
 * foreign name.
 */
export function assertKnownName(server: FastifyInstance, names: readonly string[]): void {
  server.addHook("onRequest", (request, _reply, done) => {
    done(isKnownName(request.headers.host, names) ? undefined : new Fault("bad_request", { message: unknownName }));
  });
}

/**
 * True if the host is an address, a name without a dot, or a configured name. Addresses need no DNS, and a name without
 * a dot belongs to this network. An HTTP/1.0 request may have no Host header.
 */
function isKnownName(host: string | undefined, names: readonly string[]): boolean {
  if (host === undefined || names.includes("*")) return true;
  const name = host
    .toLowerCase()
    .replace(/:\d*$/, "")
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "");
  return isIP(name) !== 0 || !name.includes(".") || name.endsWith(".localhost") || names.includes(name);
}

const unknownName =
  "The operations port is not known by the name in this request's Host header. Ask for it by its address, or add the name to TRUNKLINE_OPERATIONS_HOSTS.";

/** The key of a request, and its name in the audit trail. */
export interface Asker {
  readonly actor: Actor;
  /** The admin or viewer key that was sent, or that the session stands for. */
  readonly admin: KeyRecord;
  readonly role: SessionRole;
  /** The session of a request from the console. Undefined for a request with a key. */
  readonly session?: SessionRecord | undefined;
}

const askers = new WeakMap<FastifyRequest, Asker>();
const reading: ReadonlySet<string> = new Set(["GET", "HEAD"]);

/**
 * Refuses requests without a valid key of the admin API, or a session of the console, in a scope of routes, before their
 * bodies are read. A viewer may only read.
 */
export function proveAdmins(scope: FastifyInstance, proof: AdminProof): void {
  scope.addHook("onRequest", async (request) => {
    const asker = await askerBy(request, proof);
    request.state.key = asker.admin.id;
    if (asker.role === "viewer" && !reading.has(request.method)) {
      const viewer = asker.session === undefined ? "A viewer key" : "A viewer's session";
      throw new Fault("insufficient_permissions", { message: `${viewer} is read-only. Use an admin key here.` });
    }
    askers.set(request, asker);
  });
}

/** Proves who sends a request: the holder of an admin or viewer key, or a session of the console. */
export async function askerBy(request: FastifyRequest, proof: AdminProof): Promise<Asker> {
  const { authorization } = request.headers;
  const text = authorization === undefined ? cookieIn(request, sessionCookie) : undefined;
  if (text === undefined) {
    const admin = await authenticateAdmin({ authorization, address: request.ip }, proof);
    const role = admin.kind === "viewer" ? "viewer" : "admin";
    return { actor: { by: `admin ${admin.id}`, request: request.id }, admin, role };
  }
  assertOwnPage(request);
  const session = await proof.badKeys.askOrThrow(request.ip, async () => {
    const found = await asStore(() => findSession(text, "session", proof));
    if (found !== undefined) return found;
    throw new Fault("key_invalid", {
      message: "This session has ended. Sign in again: `trunkline console` prints a link.",
    });
  });
  const admin = await keyOfSession(session, proof);
  const by = `admin ${admin.id}, session ${session.id}`;
  return { actor: { by, request: request.id }, admin, role: session.role, session };
}

/** The cookie of a session. */
export const sessionCookie = "trunkline_session";
/** A header that no form and no link can send. */
const consoleHeader = "x-trunkline-console";

/**
 * Returns a cookie of a request. Undefined if there is none. Only spaces and tabs are cut off: a browser takes another
 * space before `__Host-` as a part of the name, and then any host of the domain may set the cookie.
 */
export function cookieIn(request: FastifyRequest, name: string): string | undefined {
  const fields = request.headers.cookie?.split(/;[ \t]*/) ?? [];
  const [found] = fields.filter((field) => field.startsWith(`${name}=`));
  return found?.slice(name.length + 1) || undefined;
}

/**
 * Refuses a request that a page of another origin made a browser send: its cookie comes along from every port of this
 * host. A change needs a header that only a script of this origin can send.
 */
export function assertOwnPage(request: FastifyRequest): void {
  const { "sec-fetch-site": site, [consoleHeader]: own } = request.headers;
  const isRead = reading.has(request.method);
  const isForeign = site !== undefined && site !== "same-origin" && !(site === "none" && isRead);
  if (!isForeign && (isRead || own !== undefined)) return;
  throw new Fault("insufficient_permissions", {
    message: `A session's cookie is good for requests of the console's own page: others send a key, and a change the header ${consoleHeader}.`,
  });
}

/** Returns the key that a session or a link stands for. Either ends with the key. */
export async function keyOfSession(session: SessionRecord, proof: AdminProof): Promise<KeyRecord> {
  const { keys, clock } = proof;
  const found = await asStore(() => keys.find(session.key));
  const verdict =
    found.kind === "record"
      ? judgeProven({ record: found.record, secretUntil: Infinity }, clock.wall())
      : ({ outcome: "invalid" } as const);
  return validKey(await asStore(async () => withLineage(verdict, keys)));
}

/** Refuses what is for admins alone. */
export async function assertAdmin(request: FastifyRequest): Promise<void> {
  if (askerOf(request).role === "admin") return;
  const message =
    "This is for admins: a viewer reads, and an operator's session changes machines, models and routes. Keys, sessions and the content of requests are for admins.";
  throw new Fault("insufficient_permissions", { message });
}

/** Returns the one who asks. A route that is reached without a key is a bug. */
export function askerOf(request: FastifyRequest): Asker {
  const asker = askers.get(request);
  if (asker === undefined) throw Fault.from(new Error("a route that needs an admin key was reached without one"));
  return asker;
}

export interface AdminProof {
  readonly sessions: SessionStore;
  readonly keys: Pick<KeyStore, "find">;
  readonly peppers: Peppers;
  readonly badKeys: BadKeys;
  readonly clock: Pick<Clock, "wall">;
}

/**
 * Returns the admin or viewer key that the Authorization header carries. Reads the store on every request, so that a
 * revoked key stops working at once. A key that an admin key issued depends on its issuers: it is refused while any of
 * them is disabled or revoked, even where the revocation did not reach its own record.
 */
export async function authenticateAdmin(
  sent: { readonly authorization: string | undefined; readonly address?: string | undefined },
  proof: Omit<AdminProof, "sessions">,
): Promise<KeyRecord> {
  const text = bearerText(sent.authorization);
  if (text === undefined) {
    throw new Fault("key_invalid", {
      message: "No admin key was sent. Send it as a header: Authorization: Bearer trunkline_admin_…",
    });
  }
  const parsed = parseKeyToken(text);
  if (parsed.outcome !== "parsed") return validKey({ outcome: "invalid" });
  const { token } = parsed;
  const ask = (): Promise<KeyVerdict> => verdictOn(token, proof);
  // Admin keys never wait behind wrong keys: an operator who is locked out of the operations port cannot stop an
  // attack.
  const { address } = sent;
  const isBounded = token.kind === "model" && address !== undefined;
  const record = validKey(await (isBounded ? proof.badKeys.ask(address, ask) : ask()));
  if (record.kind !== "model") return record;
  throw new Fault("insufficient_permissions", {
    message: "This is an API key for models. Use an admin key here.",
  });
}

async function verdictOn(token: KeyToken, { keys, peppers, clock }: Omit<AdminProof, "sessions">): Promise<KeyVerdict> {
  return asStore(async () => withLineage(await checkKey({ token, keys, peppers, nowMs: clock.wall() }), keys));
}

/** Judges a key that was found valid by the keys through which it was issued. */
async function withLineage(verdict: KeyVerdict, keys: AdminProof["keys"]): Promise<KeyVerdict> {
  if (verdict.outcome !== "valid") return verdict;
  const issuers = await issuersOf(verdict.proven.record, keys);
  if (issuers.some(({ revokedAt }) => revokedAt !== undefined)) return { outcome: "invalid" };
  return issuers.some(({ disabledAt }) => disabledAt !== undefined) ? { outcome: "disabled" } : verdict;
}

/** Asks the store. Its failure is `auth_unavailable`, and no verdict. */
export async function asStore<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await ask();
  } catch (error) {
    const { internal, message } = Fault.from(error);
    throw authUnavailable(internal ?? message);
  }
}
