import { z } from "zod";
import { keyId } from "../keys/key-token.ts";
import { sessionId } from "../keys/session-token.ts";
import { sessionRole, shownSession } from "../records/shown-session.ts";
import { atGateway, reads, recordsOf } from "./operation.ts";

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
  currency: z.string().optional().describe("The word for the currency of the site's prices."),
  version: z.string(),
});
export type ShownMe = z.output<typeof shownMe>;

/** The operations of the console's sessions. Signing in itself is no operation: `sign-in.ts` takes it without a key. */
export const sessionOperations = {
  showMe: atGateway({
    ...reads,
    path: "/me",
    summary: "The key that asks, what it may do, and where its site is reached",
    answer: shownMe,
  }),
  listSessions: atGateway({
    ...reads,
    path: "/sessions",
    summary: "The browsers that are signed in to the console, and the links that were not opened yet",
    answer: sessionList,
  }),
  makeSignInLink: atGateway({
    ...reads,
    method: "POST",
    path: "/sessions/links",
    forAdmins: true,
    summary: "Make a link that signs a browser in to the console; it works once, for ten minutes",
    body: z.strictObject({ role: sessionRole.default("admin") }),
    answer: madeLink,
    status: 201,
    example: { role: "viewer" },
  }),
  endSession: atGateway({
    ...reads,
    method: "DELETE",
    path: "/sessions/{id}",
    forAdmins: true,
    summary: "End a session, or make a link useless, at all gateways at once",
    params: z.strictObject({ id: sessionId }),
    answer: endedSessions,
    refusals: ["session_not_found"],
  }),
  endSessions: atGateway({
    ...reads,
    method: "DELETE",
    path: "/sessions",
    forAdmins: true,
    summary: "End all sessions and links, or those of one key; the session of this request ends too",
    query: z.strictObject({ key: keyId.optional().describe("Only of this key.") }),
    answer: endedSessions,
  }),
};

/** Reasons for which a sign-in by OpenID fails. The page has words for each. */
export type OpenIdRefusal = "not_begun" | "no_role" | "refused" | "long_subject" | "away" | "older";
