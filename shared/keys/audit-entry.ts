import { z } from "zod";
import { keyName } from "./key-record.ts";
import { keyId } from "./key-token.ts";

export const auditActions = [
  "issued",
  "rotated",
  "extended",
  "disabled",
  "enabled",
  "changed",
  "revoked",
  "repeppered",
] as const;
export type AuditAction = (typeof auditActions)[number];

/** How many entries a store keeps; the oldest go first. */
export const auditEntriesMax = 100_000;

/** Who did what to which key, and when. It holds no secret and no digest. */
export const auditEntry = z.strictObject({
  /** Milliseconds since 1970. */
  at: z.int().nonnegative(),
  /** A person at a command line, an admin key, or a process that acted by itself. */
  by: z.string().min(1).max(200),
  action: z.enum(auditActions),
  key: keyId,
  name: keyName,
  /** What the action said beside that, such as a new expiry. */
  detail: z.record(z.string(), z.unknown()).optional(),
  /** The request that asked for it, where there was one. */
  request: z.string().max(100).optional(),
});
export type AuditEntry = Readonly<z.infer<typeof auditEntry>>;

/** Who is named in the trail, and for which request. */
export type Actor = Pick<AuditEntry, "by" | "request">;
