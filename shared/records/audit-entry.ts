import { z } from "zod";
import { alertName, machineName, personId, routeName, teamName } from "../protocol/identifiers.ts";
import { modelId } from "../protocol/model.ts";
import { keyName } from "./key-record.ts";
import { priceName } from "./price-name.ts";
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
  "price_set",
  "price_removed",
  "team_set",
  "team_removed",
  "team_member_added",
  "team_member_dropped",
  "person_signed_in",
  "person_set",
  "person_disabled",
  "person_enabled",
  "person_removed",
  "alert_set",
  "alert_removed",
] as const;
export type AuditAction = (typeof auditActions)[number];

/**
 * True if a change may leave a key, or one of its secrets, with fewer rights. Also true for undefined, an action that
 * only a newer version knows.
 */
export function takesAway(action: AuditAction | undefined): boolean {
  return action !== "issued" && action !== "extended" && action !== "enabled" && action !== "repeppered";
}

/** The kinds of records beside keys, each with the schema of its names. A model is one that machines keep in memory. */
const recordNames = {
  machine: machineName,
  route: routeName,
  model: modelId,
  price: priceName,
  team: teamName,
  person: personId,
  alert: alertName,
};
export type RecordKind = keyof typeof recordNames;
export const recordKinds = Object.keys(recordNames) as readonly RecordKind[];

type OptionalNames = { readonly [Kind in RecordKind]: z.ZodOptional<(typeof recordNames)[Kind]> };
const optionalNames = Object.fromEntries(
  Object.entries(recordNames).map(([kind, name]) => [kind, name.optional()]),
) as unknown as OptionalNames;

/** Returns the kind and the name of the record that an entry is about. Undefined for an entry about a key. */
export function recordOf(entry: { readonly [Kind in RecordKind]?: string | null | undefined }):
  | readonly [RecordKind, string]
  | undefined {
  for (const kind of recordKinds) {
    const name = entry[kind];
    if (typeof name === "string") return [kind, name];
  }
  return undefined;
}

/** Maximum number of audit entries in a store; the oldest are removed first. */
export const auditEntriesMax = 100_000;

/**
 * One entry of the audit trail: the actor, the action, its key or record, and the time. It contains no secret and no digest
 * of one.
 */
export const auditEntry = z.strictObject({
  /** Milliseconds since 1970. */
  at: z.int().nonnegative(),
  /** A person at a command line, an admin key, or a process that acted by itself. */
  by: z.string().min(1).max(200),
  action: z.enum(auditActions),
  /** The subject of the action: `key` is set, or the name of one kind of record. */
  key: keyId.optional(),
  ...optionalNames,
  name: keyName,
  /** Further data of the action, such as a new expiry. */
  detail: z.record(z.string(), z.unknown()).optional(),
  /** Id of the request that made the change. Undefined when no request made it. */
  request: z.string().max(100).optional(),
});
export type AuditEntry = Readonly<z.infer<typeof auditEntry>>;

/** The author of a change as named in the audit trail, and the id of the request if there is one. */
export type Actor = Pick<AuditEntry, "by" | "request">;
