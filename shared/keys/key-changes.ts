import type { AuditAction } from "./audit-entry.ts";
import type { KeyId } from "./key-token.ts";

export interface KeyChangesListener {
  /** The record of this key has changed. `action` is undefined for an action that this version does not know. */
  onChange(id: KeyId, action?: AuditAction): void;
  /** The record of some machine has changed or was removed. */
  onMachineChange(): void;
  /** The store has answered, and all changes until this moment have been reported. */
  onHeard(): void;
  /** Changes may have been missed. Everything cached about keys and machines must be read again. */
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
