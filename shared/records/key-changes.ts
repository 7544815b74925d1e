import { z } from "zod";
import { jsonIn } from "../protocol/frame-payload.ts";
import { type KeyId, keyId } from "../keys/key-token.ts";
import {
  type AuditAction,
  type AuditEntry,
  auditActions,
  recordKinds,
  type RecordKind,
  recordOf,
} from "./audit-entry.ts";

export interface KeyChangesListener {
  /** The record of this key has changed. `action` is undefined for an action that this version does not know. */
  onChange(id: KeyId, action?: AuditAction): void;
  /** A record of another kind has changed or was removed. A renamed machine is told by its new name. */
  onRecordChange(kind: RecordKind, name: string): void;
  /** The store has answered, and all changes until this moment have been reported. */
  onHeard(): void;
  /** Changes may have been missed. Everything cached about keys and other records must be read again. */
  onGap(): void;
  /** The store does not answer, or has lost its keys. `onHeard` reports the end of this state. */
  onAway(): void;
}

/**
 * Reports to a process which keys any process has changed, in order. A change is reported within 1 s while the store
 * answers, also after a broken connection. A listener may cache keys for as long as reports arrive.
 */
export interface KeyChanges {
  follow(listener: KeyChangesListener): void;
  close(): void;
}

/** An action of a newer version is undefined. */
const withAction = z.object({ action: z.enum(auditActions) });

/**
 * Returns the subject of an entry, as stores keep it beside the entry. A key has its id. Another record has its name behind
 * its kind and a colon, which no key id contains.
 */
export function subjectOf({ key, ...entry }: Pick<AuditEntry, RecordKind | "key">): string {
  return key ?? recordOf(entry)?.join(":") ?? "";
}

/** Tells a listener of one stored entry. An entry whose subject only a newer version knows is left out. */
export function tellEntry(
  { subject, text }: { readonly subject: string; readonly text: string | undefined },
  listener: Pick<KeyChangesListener, "onChange" | "onRecordChange">,
): void {
  const kind = recordKinds.find((each) => subject.startsWith(`${each}:`));
  if (kind !== undefined) return listener.onRecordChange(kind, subject.slice(kind.length + 1));
  const id = keyId.safeParse(subject);
  if (id.success) listener.onChange(id.data, withAction.safeParse(jsonIn(text ?? "")).data?.action);
}
