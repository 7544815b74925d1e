import { z } from "zod";
import { jsonIn } from "../protocol/frame-payload.ts";
import { type KeyId, keyId } from "../keys/key-token.ts";
import { type AuditAction, type AuditEntry, auditActions } from "./audit-entry.ts";

export interface KeyChangesListener {
  /** The record of this key has changed. `action` is undefined for an action that this version does not know. */
  onChange(id: KeyId, action?: AuditAction): void;
  /** The record of this machine has changed or was removed. A renamed machine is told by its new name. */
  onMachineChange(machine: string): void;
  /** The record of this route has changed or was removed. */
  onRouteChange(route: string): void;
  /** The store has answered, and all changes until this moment have been reported. */
  onHeard(): void;
  /** Changes may have been missed. Everything cached about keys, machines and routes must be read again. */
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

const machineBegin = "machine:";

const routeBegin = "route:";

const modelBegin = "model:";

/**
 * Returns the subject of an entry, as stores keep it beside the entry. A key has its id. A machine, a route and a model
 * have their names behind a prefix that no key id contains.
 */
export function subjectOf({
  key,
  machine,
  route = "",
  model,
}: Pick<AuditEntry, "key" | "machine" | "route" | "model">): string {
  if (key !== undefined) return key;
  if (model !== undefined) return `${modelBegin}${model}`;
  return machine === undefined ? `${routeBegin}${route}` : `${machineBegin}${machine}`;
}

/** Tells a listener of one stored entry. An entry whose subject only a newer version knows is left out. */
export function tellEntry(
  { subject, text }: { readonly subject: string; readonly text: string | undefined },
  listener: Pick<KeyChangesListener, "onChange" | "onMachineChange" | "onRouteChange">,
): void {
  if (subject.startsWith(machineBegin)) listener.onMachineChange(subject.slice(machineBegin.length));
  else if (subject.startsWith(routeBegin)) listener.onRouteChange(subject.slice(routeBegin.length));
  else {
    const id = keyId.safeParse(subject);
    if (id.success) listener.onChange(id.data, withAction.safeParse(jsonIn(text ?? "")).data?.action);
  }
}
