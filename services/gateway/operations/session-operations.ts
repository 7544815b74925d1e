import packageJson from "../../../package.json" with { type: "json" };
import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { keyId } from "#shared/keys/key-token.ts";
import { sessionId } from "#shared/keys/session-token.ts";
import { linkMs, makeSession, mayEndOthers, sessionUnknown, signInUrl } from "#shared/records/session-record.ts";
import { sessionRole, showSession, shownSession } from "#shared/records/shown-session.ts";
import { isoTime } from "#shared/process/clock.ts";
import { defineOperation, listRecords, recordsOf, reads } from "./serve-operation.ts";

const time = z.iso.datetime();

const sessionList = recordsOf(z.array(shownSession).describe("The oldest first."));
const endedSessions = z.strictObject({ ended: z.array(sessionId) });
const madeLink = z.strictObject({
  token: z.string().describe("Opens a session once. It stands behind # in the address, so that no log gets it."),
  url: z.string().describe("The link itself, by the address under which this gateway knows its console."),
  expires_at: time,
});
const shownMe = z.strictObject({
  name: z.string().describe("The name of the key."),
  key: keyId,
  role: sessionRole,
  session: shownSession.nullable().describe("The session of this request; null for a request with a key."),
  everywhere: z.boolean().describe("True if signing out everywhere ends the other sessions and links of the key too."),
  base_url: z.string().describe("The base URL for clients of the models."),
  version: z.string(),
});
export type ShownMe = z.output<typeof shownMe>;

/** The answers of these operations that the document of the API names. */
export const sessionSchemas = { Session: shownSession, SessionList: sessionList, Me: shownMe };

/** The operations of the console's sessions. Signing in itself is no operation: `sign-in.ts` takes it without a key. */
export const sessionOperations = {
  showMe: defineOperation({
    ...reads,
    path: "/me",
    summary: "The key that asks, what it may do, and where its site is reached",
    answer: shownMe,
    async run({ asker: { admin, session, role: own } }, { addresses }) {
      return {
        name: admin.name,
        key: admin.id,
        role: own,
        session: session === undefined ? null : showSession(session),
        everywhere: session !== undefined && mayEndOthers(session),
        base_url: addresses().baseUrl,
        version: packageJson.version,
      };
    },
  }),
  listSessions: defineOperation({
    ...reads,
    path: "/sessions",
    summary: "The browsers that are signed in to the console, and the links that were not opened yet",
    answer: sessionList,
    run: (_, { sessions, clock }) =>
      listRecords(
        async (unread) => (await sessions.list(unread)).filter(({ expiresAt }) => expiresAt > clock.wall()),
        showSession,
      ),
  }),
  makeSignInLink: defineOperation({
    ...reads,
    method: "POST",
    path: "/sessions/links",
    forAdmins: true,
    summary: "Make a link that signs a browser in to the console; it works once, for ten minutes",
    body: z.strictObject({ role: sessionRole.default("admin") }),
    answer: madeLink,
    status: 201,
    example: { role: "viewer" },
    async run({ body, asker: { admin } }, parts) {
      const { token, record } = await makeSession({ kind: "link", role: body.role, key: admin }, parts);
      const url = signInUrl(parts.addresses().consoleUrl, token.text);
      return { token: token.text, url, expires_at: isoTime(record.expiresAt) };
    },
  }),
  endSession: defineOperation({
    ...reads,
    method: "DELETE",
    path: "/sessions/{id}",
    forAdmins: true,
    summary: "End a session, or make a link useless, at all gateways at once",
    params: z.strictObject({ id: sessionId }),
    answer: endedSessions,
    refusals: ["session_not_found"],
    async run({ params: { id }, asker }, { sessions, log }) {
      if (!(await sessions.remove(id))) throw sessionUnknown();
      log.info({ ...asker.actor, session: id }, "a session was ended");
      return { ended: [id] };
    },
  }),
  endSessions: defineOperation({
    ...reads,
    method: "DELETE",
    path: "/sessions",
    forAdmins: true,
    summary: "End all sessions and links, or those of one key; the session of this request ends too",
    query: z.strictObject({ key: keyId.optional().describe("Only of this key.") }),
    answer: endedSessions,
    async run({ query: { key }, asker }, { sessions, log }) {
      const all = (await sessions.list()).filter((each) => key === undefined || each.key === key);
      for (const { id } of all) await sessions.remove(id);
      log.info({ ...asker.actor, sessions: all.length, key }, "sessions were ended");
      return { ended: all.map(({ id }) => id) };
    },
  }),
};

/** Returns the refusal of a link: a used one, an expired one and an invented one look the same. */
export function linkRefused(): Fault {
  return new Fault("key_invalid", {
    message: `This link was used before, or is older than ${linkMs / 60_000} minutes. \`trunkline console\` prints another one.`,
  });
}
