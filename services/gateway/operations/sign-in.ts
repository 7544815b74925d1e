import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { KeyRecord } from "#shared/records/key-record.ts";
import { findSession, makeSession, type SessionRole, sessionMs } from "#shared/records/session-record.ts";
import { readJsonObject } from "../http/read-json.ts";
import { readShape } from "../http/read-shape.ts";
import { refuseOtherMethods } from "../http/answer-faults.ts";
import {
  type AdminProof,
  assertOwnPage,
  authenticateAdmin,
  keyOfSession,
  sessionCookie,
  sessionText,
} from "./operations-access.ts";
import { linkRefused } from "./session-operations.ts";

const body = z.strictObject({
  token: z.string().max(200).describe("The token of a sign-in link, or an admin or viewer key."),
});

interface SignInParts extends AdminProof {
  readonly addresses: () => { readonly consoleUrl: string };
  readonly log: { info(fields: object, message: string): void };
}

/**
 * Mounts the session of the console: POST signs in, DELETE signs out. Links and keys that are wrong are bounded by their
 * address, as at the public port: whoever guesses waits behind the others, and a good one is still found.
 */
export function sessionRoutes(operations: FastifyInstance, parts: SignInParts): void {
  void operations.register(async (server) => mountSession(server, parts));
  refuseOtherMethods(operations, url, ["POST", "DELETE"]);
}

const url = "/console/session";

function mountSession(server: FastifyInstance, parts: SignInParts): void {
  server.addHook("onRequest", async (request, reply) => {
    void reply.header("cache-control", "no-store");
    assertOwnPage(request);
  });
  server.post(url, async (request, reply) => {
    const { token } = readShape(body, request.body instanceof Buffer ? readJsonObject(request.body) : {}).value;
    const { key, role } = await parts.badKeys.askOrThrow(request.ip, () => proveSignIn(token.trim(), parts));
    const { "user-agent": agent } = request.headers;
    const made = await makeSession({ kind: "session", role, key, address: request.ip, agent }, parts);
    parts.log.info(
      { key: key.id, session: made.record.id, role, address: request.ip },
      "a browser signed in to the console",
    );
    setCookie(reply, { text: made.token.text, maxAgeMs: sessionMs, request, consoleUrl: parts.addresses().consoleUrl });
    return reply.code(201).send({ role, expires_at: new Date(made.record.expiresAt).toISOString() });
  });
  server.delete(url, async (request, reply) => {
    const session = await findSession(sessionText(request) ?? "", "session", parts);
    if (session !== undefined) await parts.sessions.remove(session.id);
    setCookie(reply, { text: "", maxAgeMs: 0, request, consoleUrl: parts.addresses().consoleUrl });
    return reply.send({ ended: session === undefined ? [] : [session.id] });
  });
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

function setCookie(
  reply: FastifyReply,
  {
    text,
    maxAgeMs,
    request,
    consoleUrl,
  }: {
    readonly text: string;
    readonly maxAgeMs: number;
    readonly request: FastifyRequest;
    readonly consoleUrl: string;
  },
): void {
  const isSecure = request.protocol === "https" || consoleUrl.startsWith("https:");
  const fields = [`${sessionCookie}=${text}`, "Path=/", "HttpOnly", "SameSite=Strict", `Max-Age=${maxAgeMs / 1_000}`];
  void reply.header("set-cookie", [...fields, ...(isSecure ? ["Secure"] : [])].join("; "));
}
