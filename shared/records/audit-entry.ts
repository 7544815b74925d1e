import { z } from "zod";
import { machineName, routeName } from "../protocol/identifiers.ts";
import { modelId } from "../protocol/model.ts";
import { keyName } from "./key-record.ts";
import { keyId } from "../keys/key-token.ts";

export const auditActions = [
  "issued",
  "rotated",
  "extended",
  "disabled",
  "enabled",
  "changed",
  "revoked",
  "repeppered",
  "machine_set",
  "machine_removed",
  "machine_paired",
  "machine_joined",
  "machine_join_reused",
  "machine_renamed",
  "machine_revoked",
  "machine_cordoned",
  "machine_uncordoned",
  "machine_labelled",
  "machine_external",
  "machine_direct",
  "machine_direct_ended",
  "route_set",
  "route_removed",
  "keep_set",
  "keep_removed",
] as const;
export type AuditAction = (typeof auditActions)[number];

/**
 * True if a change may leave a key, or one of its secrets, with fewer rights. Also true for undefined, an action that
 * only a newer version knows.
 */
export function takesAway(action: AuditAction | undefined): boolean {
  return action !== "issued" && action !== "extended" && action !== "enabled" && action !== "repeppered";
}

/** Maximum number of audit entries in a store; the oldest are removed first. */
export const auditEntriesMax = 100_000;

/**
 * One entry of the audit trail: the actor, the action, its key, machine, route or model, and the time. It contains no secret and no
 * digest.
 */
export const auditEntry = z.strictObject({
  /** Milliseconds since 1970. */
  at: z.int().nonnegative(),
  /** A person at a command line, an admin key, or a process that acted by itself. */
  by: z.string().min(1).max(200),
  action: z.enum(auditActions),
  /** The subject of the action: `key`, `machine`, `route` or `model` is set. */
  key: keyId.optional(),
  machine: machineName.optional(),
  route: routeName.optional(),
  model: modelId.optional(),
  name: keyName,
  /** Further data of the action, such as a new expiry. */
  detail: z.record(z.string(), z.unknown()).optional(),
  /** Id of the request that made the change. Undefined when no request made it. */
  request: z.string().max(100).optional(),
});
export type AuditEntry = Readonly<z.infer<typeof auditEntry>>;

/** The author of a change as named in the audit trail, and the id of the request if there is one. */
export type Actor = Pick<AuditEntry, "by" | "request">;
