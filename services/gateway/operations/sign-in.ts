import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import type { KeyRecord } from "#shared/records/key-record.ts";
import type { KeyStore } from "#shared/records/key-store.ts";
import type { PersonStore } from "#shared/records/person-record.ts";
import {
  findSession,
  holderOf,
  linkMs,
  makeSession,
  mayEndOthers,
  type SessionRecord,
  type SessionRole,
  sessionMs,
} from "#shared/records/session-record.ts";
import type { Log } from "#shared/process/log.ts";
import { olderGateway } from "#shared/records/site-gateways.ts";
import { readJsonObject, readShape } from "../http/read-json.ts";
import { refuseOtherMethods } from "../http/answer-faults.ts";
import type { Exchange } from "../http/request-state.ts";
import {
  type AdminProof,
  assertOwnPage,
  authenticateAdmin,
  cookieIn,
  keyOfSession,
  sessionCookie,
} from "./operations-access.ts";
import { type OpenId, openIdMs, type Proved } from "./open-id.ts";
import { keyOfPerson } from "./person-key.ts";

const body = z.strictObject({
  token: z.string().max(200).describe("The token of a sign-in link, or an admin or viewer key."),
});

interface SignInParts extends AdminProof {
  /** Stores the keys of people who sign in by OpenID. */
  readonly written: KeyStore;
  readonly people: Pick<PersonStore, "find">;
  readonly openId: OpenId | undefined;
  readonly addresses: () => { readonly consoleUrl: string };
  readonly log: Pick<Log, "info">;
}

const url = "/console/session";
const openIdUrl = "/console/openid";
const doneUrl = "/console/openid/done";

/**
 * Mounts the session of the console: POST signs in, DELETE signs out, and with `?everywhere`
 * all browsers of the same key, if the session may end them. Links and keys that are wrong are bounded by their
 * address, as at the public port: whoever guesses waits behind the others, and a good one is still found.
 */
export function sessionRoutes(operations: FastifyInstance, parts: SignInParts): void {
  void operations.register(async (server) => mountSession(server, parts));
  refuseOtherMethods(operations, url, ["GET", "HEAD", "POST", "DELETE"]);
  if (parts.openId !== undefined) mountConsoleOpenId(operations, parts.openId, parts);
}

function mountSession(server: FastifyInstance, parts: SignInParts): void {
  const { openId } = parts;
  server.addHook("onRequest", async (request, reply) => {
    void reply.header("cache-control", "no-store");
    assertOwnPage(request);
  });
  server.get(url, async () => ({ openid: openId?.host ?? null }));
  server.post(url, async (request, reply) => {
    const { token } = readShape(body, request.body instanceof Buffer ? readJsonObject(request.body) : {}).value;
    const { key, role } = await parts.badKeys.askOrThrow(request.ip, () => proveSignIn(token.trim(), parts));
    const { expiresAt } = await openSession({ key, role }, { request, reply, parts });
    return reply.code(201).send({ role, expires_at: new Date(expiresAt).toISOString() });
  });
  server.delete(url, async (request, reply) => {
    const session = await findSession(cookieIn(request, sessionCookie) ?? "", "session", parts);
    const everywhere = session && "everywhere" in (request.query as object) && mayEndOthers(session);
    const others = everywhere ? (await parts.sessions.list()).filter((each) => holderOf(each) === session.key) : [];
    // The own session ends last, so that a browser whose request failed can send it again.
    const ended = session === undefined ? [] : [...others.filter(({ id }) => id !== session.id), session];
    const ids = ended.map(({ id }) => id);
    for (const id of ids) await parts.sessions.remove(id);
    setCookie(reply, { name: sessionCookie, text: "", maxAgeMs: 0, isSecure: isSecure(request, parts) });
    return reply.send({ ended: ids });
  });
}

/** Mounts the way to the OpenID provider and back for the console. The session itself begins as with a link. */
function mountConsoleOpenId(server: FastifyInstance, openId: OpenId, parts: SignInParts): void {
  openIdRoutes(server, {
    ...parts,
    openId,
    cookie: "trunkline_openid",
    isSecure: (request) => isSecure(request, parts),
    page: () => parts.addresses().consoleUrl,
    async enter(proved, exchange) {
      const role = openId.roleOf(proved);
      const isMember = role === undefined || role === "member";
      if (isMember) openId.warnOfNoRole(proved);
      const isDisabled = async () => (await parts.people.find(proved.digest))?.disabledAt !== undefined;
      if (isMember || (await isDisabled())) return "no_role";
      const key = await keyOfPerson(proved, role, { ...parts, keys: parts.written });
      // An admin who disables the person from here on finds the key.
      if (key === undefined || (await isDisabled())) return "no_role";
      // A gateway of 0.2.0 beside could not read the session with `own`.
      const own = olderGateway("own", await parts.written.gateways()) === undefined;
      await openSession({ key, role, own }, { ...exchange, parts });
      return undefined;
    },
  });
}

/** The way of a browser to the OpenID provider and back, at one of the ports. */
interface OpenIdWay {
  readonly openId: OpenId;
  readonly badKeys: AdminProof["badKeys"];
  /** The cookie of a sign-in that is under way. It comes along when the provider sends the browser back. */
  readonly cookie: string;
  readonly isSecure: (request: FastifyRequest) => boolean;
  /** The URL of the page, below which the provider sends the browser back. */
  readonly page: () => string;
  /** Opens a session for a proved person, or returns the reason why there is none. */
  readonly enter: (proved: Proved, exchange: Exchange) => Promise<string | undefined>;
}

/** Mounts the way to the OpenID provider and back. Refusals are bounded by their address. */
export function openIdRoutes(server: FastifyInstance, way: OpenIdWay): void {
  const { openId, page, enter } = way;
  const callback = (): string => page() + doneUrl.slice("/console".length);
  const keep = (text: string, { request, reply }: Exchange): void => {
    const maxAgeMs = text === "" ? 0 : openIdMs;
    setCookie(reply, { name: way.cookie, text, maxAgeMs, sameSite: "Lax", isSecure: way.isSecure(request) });
  };
  server.get(openIdUrl, async (request, reply) => {
    const begun = await openId.begin(callback());
    keep(begun?.kept ?? "", { request, reply });
    return reply.header("cache-control", "no-store").redirect(begun?.url.href ?? refusedAt("away"), 303);
  });
  server.get(doneUrl, async (request, reply) => {
    const current = new URL(
      callback() + (request.url.includes("?") ? request.url.slice(request.url.indexOf("?")) : ""),
    );
    const { refusal } = await way.badKeys.ask(request.ip, async () => {
      const found = await openId.finish(current, cookieIn(request, way.cookie));
      keep("", { request, reply });
      const reason = typeof found === "string" ? found : await enter(found, { request, reply });
      return { refusal: reason, outcome: reason === undefined || reason === "away" ? "valid" : "invalid" };
    });
    const next = refusal === undefined ? "/console" : refusedAt(refusal);
    return reply.header("cache-control", "no-store").redirect(next, 303);
  });
  for (const each of [openIdUrl, doneUrl]) refuseOtherMethods(server, each, ["GET", "HEAD"]);
}

/** Returns the page that tells of a refusal. It reads a code and no text, so that no link puts words into the page. */
function refusedAt(refusal: string): string {
  return `/console#refused=${refusal}`;
}

/** Makes a session for a proven key, and gives its cookie to the browser. */
async function openSession(
  who: { readonly key: KeyRecord; readonly role: SessionRole; readonly own?: boolean },
  { request, reply, parts }: Exchange & { readonly parts: SignInParts },
): Promise<SessionRecord> {
  const { "user-agent": agent } = request.headers;
  const { token, record } = await makeSession({ kind: "session", ...who, address: request.ip, agent }, parts);
  const signedIn = { key: record.key, session: record.id, role: record.role, address: request.ip };
  await parts.sessions.noteSignIn({
    at: record.createdAt,
    by: `admin ${record.key}, session ${record.id}`,
    action: "signed_in",
    key: record.key,
    name: who.key.name,
    detail: { role: record.role, address: request.ip, user_agent: record.agent },
    request: request.id,
  });
  parts.log.info(signedIn, "a browser signed in to the console");
  setCookie(reply, {
    name: sessionCookie,
    text: token.text,
    maxAgeMs: sessionMs,
    isSecure: isSecure(request, parts),
  });
  return record;
}

/** True if the browser reaches the console by TLS. */
function isSecure(request: FastifyRequest, { addresses }: Pick<SignInParts, "addresses">): boolean {
  return request.protocol === "https" || addresses().consoleUrl.startsWith("https:");
}

/** Proves a link, which is thereby spent, or a key. */
async function proveSignIn(
  token: string,
  parts: SignInParts,
): Promise<{ readonly key: KeyRecord; readonly role: SessionRole }> {
  if (!token.startsWith("trunkline_link_")) {
    const key = await authenticateAdmin({ authorization: `Bearer ${token}` }, parts);
    return { key, role: key.kind === "viewer" ? "viewer" : "admin" };
  }
  const link = await findSession(token, "link", parts);
  // Of several that spend it at once, one removes it.
  if (link === undefined || !(await parts.sessions.remove(link.id))) throw linkRefused();
  return { key: await keyOfSession(link, parts), role: link.role };
}

interface Cookie {
  readonly name: string;
  readonly text: string;
  readonly maxAgeMs: number;
  readonly sameSite?: "Strict" | "Lax";
  readonly isSecure: boolean;
}

/** Adds a cookie that no script reads. */
export function setCookie(reply: FastifyReply, cookie: Cookie): void {
  const { name, text, maxAgeMs, sameSite = "Strict" } = cookie;
  const fields = [`${name}=${text}`, "Path=/", "HttpOnly", `SameSite=${sameSite}`, `Max-Age=${maxAgeMs / 1_000}`];
  void reply.header("set-cookie", [...fields, ...(cookie.isSecure ? ["Secure"] : [])].join("; "));
}

/** Returns the refusal of a link: a used one, an expired one and an invented one look the same. */
function linkRefused(): Fault {
  return new Fault("key_invalid", {
    message: `This link was used before, or is older than ${linkMs / 60_000} minutes. \`trunkline console\` prints another one.`,
  });
}
