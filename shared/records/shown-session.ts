import { z } from "zod";
import { keyId } from "../keys/key-token.ts";
import { sessionId } from "../keys/session-token.ts";
import { isoTime } from "../process/clock.ts";
import { type SessionRecord, sessionRecord, sessionRoles } from "./session-record.ts";

const time = z.iso.datetime();

export const sessionRole = z
  .enum(sessionRoles)
  .describe(
    "What it may do: a viewer reads, an operator also changes machines, models and routes, an admin everything.",
  );

/** A session of the console, or a link that opens one, as the command line and the admin API show it. */
export const shownSession = z.object({
  id: sessionId,
  kind: sessionRecord.shape.kind.describe("A link that was not opened yet, or a session."),
  role: sessionRole,
  key: keyId.describe("The admin or viewer key that it stands for, and ends with."),
  created_at: time,
  expires_at: time,
  address: z.string().nullable().describe("Where its browser signed in from; null for a link."),
  user_agent: z.string().nullable(),
});

export function showSession(record: SessionRecord): z.output<typeof shownSession> {
  const { id, kind, role, key, createdAt, expiresAt, address = null, agent = null } = record;
  const [created_at, expires_at] = [isoTime(createdAt), isoTime(expiresAt)];
  return { id, kind, role, key, created_at, expires_at, address, user_agent: agent };
}
