import { z } from "zod";
import type { AuditEntry } from "./audit-entry.ts";
import { oneLine, scope, scopesPerKeyMax } from "./key-record.ts";
import { allows } from "./match-scope.ts";
import { readStored, type RecordStore, type Written } from "./key-store.ts";
import { keyId } from "../keys/key-token.ts";
import { machineName } from "../protocol/identifiers.ts";
import { joinId, joinKeyText, machineKey, siteId } from "../protocol/pairing.ts";

/** Maximum number of machine records of a site. Every gateway holds all of them. */
export const machineRecordsMax = 10_000;
const actorCharactersMax = 200;
/** A longer address is cut. */
export const addressCharactersMax = 100;

/** The models that a machine may offer, in the syntax of a key's scopes. */
export const modelPatterns = z
  .array(scope)
  .min(1, "must name at least one pattern; * permits every model")
  .max(scopesPerKeyMax, `must be at most ${scopesPerKeyMax} patterns`)
  .readonly();

const labelsPerMachineMax = 16;

/** A word by which a route names machines, such as `fast`. */
export const machineLabel = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,30}$/, "must be 1 to 31 small letters, digits or hyphens, and not begin with a hyphen");

export const machineLabels = z
  .array(machineLabel)
  .max(labelsPerMachineMax, `must be at most ${labelsPerMachineMax} labels`)
  .readonly();

/** The reason of a cordon, as `status` shows it. */
export const cordonReason = oneLine(200);

const wallMs = z.int().nonnegative();
const actorName = z.string().min(1).max(actorCharactersMax);
const address = z.string().max(addressCharactersMax);

/** A join line as the site keeps it: without its secret, and good for one use. */
const joinRecord = z.looseObject({
  id: joinId,
  /** The key of the proofs, which is derived from the secret. */
  key: joinKeyText,
  by: actorName,
  /** The admin key that made the line. Undefined for a line of the command line. */
  admin: keyId.optional(),
  expiresAt: wallMs,
  usedAt: wallMs.optional(),
  usedFrom: address.optional(),
  /** The first attempt to use it again, by somebody with another key who knows the secret. */
  usedAgainAt: wallMs.optional(),
  usedAgainFrom: address.optional(),
});

/**
 * The site's record of a machine, which may exist before the machine's first message. Times are milliseconds since
 * 1970. Unknown fields are kept, so that an older command line changes the patterns and removes nothing else.
 */
export const machineRecord = z.looseObject({
  name: machineName,
  /** 1 for a new record, and one more with every change, so that a writer detects a concurrent change. */
  version: z.int().positive(),
  /** Undefined permits every model. */
  models: modelPatterns.optional(),
  /** Undefined for a machine without labels. */
  labels: machineLabels.optional(),
  /** The key by which the machine proves itself. It stays in a revoked record, until the machine is paired anew. */
  publicKey: machineKey.optional(),
  pairedAt: wallMs.optional(),
  /** The author of the join line by which the machine was paired. */
  pairedBy: actorName.optional(),
  join: joinRecord.optional(),
  revokedAt: wallMs.optional(),
  /**
   * The machine's models run elsewhere, such as at a cloud. Only routes that say so lead there, and only keys that were
   * issued for it. The operator says this and never the machine.
   */
  external: z.literal(true).optional(),
  /** A cordoned machine finishes its jobs and gets no new one. */
  cordon: z
    .looseObject({
      reason: cordonReason,
      at: wallMs,
      by: actorName,
      /** True if it also hands over the answers that another machine can go on with. */
      drains: z.literal(true).optional(),
    })
    .optional(),
  createdAt: wallMs,
  changedAt: wallMs,
});
export type MachineRecord = Readonly<z.infer<typeof machineRecord>>;

export function permits(record: MachineRecord | undefined, modelId: string): boolean {
  return record?.models === undefined || allows(record.models, modelId);
}

/** The site as its store knows it. */
export const site = z.looseObject({
  id: siteId,
  /** The URL by which machines reach the site, without a path. Gateways note it when they start. */
  publicUrl: z.url().optional(),
  /** SHA-256 of the site's certificate in base64url, unless a public authority signed the certificate. */
  certificateSha256: z.string().optional(),
  /** False if its gateways cannot connect paired machines to NATS. */
  takesMachines: z.boolean().optional(),
  /** The gateway that serves an embedded store, as it noted itself. Absent if 0.2.0 served it last. */
  gateway: z.string().optional(),
});
export type SiteRecord = Readonly<z.infer<typeof site>>;

/** The offer of a machine when it was heard: its model servers, and how many models. */
export const machineOffer = z
  .object({ runtime: z.string().nullable(), models: z.int().nonnegative() })
  .catch({ runtime: null, models: 0 });

export interface SeenMachine extends Readonly<z.infer<typeof machineOffer>> {
  readonly atMs: number;
}

export interface MachineStore extends RecordStore<MachineRecord> {
  /** Returns the site. The first call makes its id, which never changes. */
  site(): Promise<SiteRecord>;
  /** Stores what machines have to know to reach the site, in place of what was noted before. */
  noteSite(reached: Partial<Omit<SiteRecord, "id">>): Promise<void>;
  /** Returns the record of the machine with this public key, revoked or not. */
  findByKey(publicKey: string): Promise<MachineRecord | undefined>;
  /** Returns the record whose latest join line has this id, used or not. */
  findByJoin(id: string): Promise<MachineRecord | undefined>;
  /**
   * Writes a record with a new public key, and claims the key for good in the same step. `taken`: this site accepted
   * the key before, for whatever machine.
   */
  pair(record: MachineRecord & { readonly publicKey: string }, entry: AuditEntry): Promise<Written | "taken">;
  /** Writes a record under its new name and removes the one called `from`. `taken`: there is a record of that name. */
  rename(from: string, record: MachineRecord, entry: AuditEntry): Promise<Written | "taken">;
  /**
   * Notes when paired machines were last heard and what they offered, by public key. This is beside the records: it
   * changes no version, writes no audit entry, and wakes no gateway.
   */
  noteSeen(seen: ReadonlyMap<string, SeenMachine>): Promise<void>;
  /** Returns when each paired machine was last heard and what it offered then, by public key. */
  lastSeen(): Promise<ReadonlyMap<string, SeenMachine>>;
}

/** Parses what was noted of a site. */
export function readSite(id: unknown, noted: unknown): SiteRecord {
  return readStored(site, () => ({ ...Object(JSON.parse(typeof noted === "string" ? noted : "{}")), id }));
}
