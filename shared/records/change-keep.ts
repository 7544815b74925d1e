import { Fault } from "../fault/fault.ts";
import type { Clock } from "../process/clock.ts";
import type { Actor } from "./audit-entry.ts";
import { keepsPerSiteMax, keepText, type KeepRecord, type KeepStore } from "./keep-record.ts";
import { retryConflicts } from "./key-store.ts";

export interface KeepDependencies {
  readonly keeps: KeepStore;
  readonly clock: Pick<Clock, "wall">;
  /** The actor that the audit trail names. */
  readonly actor: Actor;
}

export interface KeepChanged {
  readonly outcome: "changed" | "unchanged";
  readonly record: KeepRecord;
}

const contended = "The wish for this model was changed at the same time. Try again.";

/** Has machines keep a model in memory, whatever was wished for it before. */
export async function setKeep(
  name: string,
  wish: Pick<KeepRecord, "copies" | "machines">,
  { keeps, clock, actor }: KeepDependencies,
): Promise<KeepChanged> {
  if (wish.machines !== undefined && wish.copies > wish.machines.length) {
    throw new Fault("keep_change_refused", {
      message: `${wish.copies} copies need as many machines, and ${wish.machines.length} are named. Name more, or ask for fewer copies.`,
      param: "copies",
    });
  }
  return retryConflicts(async () => {
    const before = await keeps.find(name);
    if (before !== undefined && keepText(before) === keepText(wish)) {
      return { outcome: "unchanged", record: before } as const;
    }
    if (before === undefined && (await keeps.list()).length >= keepsPerSiteMax) {
      const message = `There are ${keepsPerSiteMax} kept models already (keepsPerSiteMax): remove one first.`;
      throw new Fault("keep_change_refused", { message });
    }
    const at = clock.wall();
    const version = (before?.version ?? 0) + 1;
    const record = {
      ...before,
      name,
      version,
      machines: undefined,
      ...wish,
      createdAt: before?.createdAt ?? at,
      changedAt: at,
    };
    const detail = { keeps: keepText(wish), ...(before && { was: { keeps: keepText(before) } }) };
    const entry = { at, ...actor, action: "keep_set", model: name, name: name.slice(0, 100), detail } as const;
    return (await keeps.write(record, entry)) === "written" ? ({ outcome: "changed", record } as const) : "conflict";
  }, contended);
}

/** Keeps a model no longer. It stays in memory until another one needs the room. */
export async function removeKeep(name: string, { keeps, clock, actor }: KeepDependencies): Promise<KeepRecord> {
  return retryConflicts(async () => {
    const record = await keeps.find(name);
    if (record === undefined) {
      const message = `The model '${name}' is not kept: \`trunkline models plan\` shows those that are.`;
      throw new Fault("keep_not_found", { message, param: "model" });
    }
    const detail = { was: { keeps: keepText(record) } };
    const entry = {
      at: clock.wall(),
      ...actor,
      action: "keep_removed",
      model: name,
      name: name.slice(0, 100),
      detail,
    } as const;
    return (await keeps.remove(record, entry)) === "written" ? record : "conflict";
  }, contended);
}
