import type { KeyId } from "./key-token.ts";

export interface KeyChangesListener {
  /** The record of this key is another one from now on. */
  onChange(id: KeyId): void;
  /** The store has answered, and until this moment there was no change that was not told. */
  onHeard(): void;
  /** Changes may have been missed: whatever was kept of any key is to be looked at anew. */
  onGap(): void;
  /** The store does not answer, or has lost its keys; `onHeard` says when that is over. */
  onAway(): void;
}

/**
 * Tells a process which keys were changed by any process, in order and soon: within 1 s while the store answers, also
 * after a connection that broke. Whoever follows it may keep what it knows of keys for as long as it hears.
 */
export interface KeyChanges {
  follow(listener: KeyChangesListener): void;
  close(): void;
}
