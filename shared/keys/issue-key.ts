import { z } from "zod";
import type { Clock } from "../process/clock.ts";
import type { Actor } from "./audit-entry.ts";
import { durationMsMax, formatDuration } from "./duration.ts";
import { keyLimits } from "./key-limits.ts";
import { boundMachines, keyName, keyRecord, type KeyRecord } from "./key-record.ts";
import type { KeyStore } from "./key-store.ts";
import { keyKinds, mintKeyToken, type KeyToken } from "./key-token.ts";
import type { Peppers } from "./peppers.ts";
import { scopes } from "./scope.ts";
import { shownTerms } from "./shown-key.ts";

const dayMs = 86_400_000;

export const defaultTtlMs = 90 * dayMs;
/** Whoever holds an admin key can make keys of any kind, so none of them is for long. */
export const adminTtlMsMax = 90 * dayMs;

/** What whoever issues a key may choose about it. */
export const newKey = z
  .strictObject({
    kind: z.enum(keyKinds).default("model"),
    name: keyName,
    scopes,
    ttlMs: z.int().min(1).max(durationMsMax),
    machines: boundMachines.optional(),
    limits: keyLimits.optional(),
  })
  .refine(({ kind, ttlMs }) => kind !== "admin" || ttlMs <= adminTtlMsMax, {
    message: `of an admin key must be at most ${formatDuration(adminTtlMsMax)}`,
    path: ["ttlMs"],
  });
export type NewKey = Readonly<z.input<typeof newKey>>;

/** What it takes to issue a key or to change one. */
export interface KeyMeans {
  readonly keys: Pick<KeyStore, "find" | "issue" | "replace" | "forget">;
  readonly peppers: Peppers;
  readonly clock: Pick<Clock, "wall">;
  /** Who is to be named for it in the audit trail. */
  readonly actor: Actor;
}

export interface IssuedKey {
  /** To be shown to its holder once; nobody can find it out again. */
  readonly token: KeyToken;
  readonly record: KeyRecord;
}

export async function issueKey(key: NewKey, { keys, peppers, clock, actor }: KeyMeans): Promise<IssuedKey> {
  const { kind, name, scopes: granted, ttlMs, machines, limits } = newKey.parse(key);
  const token = mintKeyToken(kind);
  const createdAt = clock.wall();
  const record = keyRecord.parse({
    id: token.id,
    version: 0,
    kind,
    name,
    digest: token.digest(peppers.current),
    pepper: peppers.current.fingerprint,
    scopes: granted,
    ...(machines === undefined ? {} : { machines }),
    ...(Object.values(limits ?? {}).some((limit) => limit !== undefined) ? { limits } : {}),
    createdAt,
    expiresAt: createdAt + ttlMs,
  });
  await keys.issue(record, {
    at: createdAt,
    ...actor,
    action: "issued",
    key: token.id,
    name,
    detail: shownTerms(record),
  });
  return { token, record };
}
