import { Fault } from "../fault/fault.ts";
import type { Actor } from "../keys/audit-entry.ts";
import type { KeyStore, Replication } from "../keys/key-store.ts";
import type { Clock } from "../process/clock.ts";
import { machineRecordsMax, type MachineRecord, type MachineStore } from "./machine-record.ts";

interface MachineMeans {
  readonly machines: MachineStore;
  /** Narrower patterns take a right away. The change therefore waits for a replica, as the revocation of a key does. */
  readonly keys: Pick<KeyStore, "awaitReplica">;
  readonly clock: Pick<Clock, "wall">;
  /** The actor that the audit trail names. */
  readonly actor: Actor;
}

export interface MachineChanged {
  readonly outcome: "changed" | "unchanged";
  readonly record: MachineRecord;
  readonly replication: Replication;
}

const everyModel = ["*"];

/**
 * Bounds the retries after a conflict. Concurrent changes of one record are rare, and each attempt lets one of them
 * succeed.
 */
const attemptsMax = 100;

/**
 * Sets the models that a machine may offer, for every process; undefined permits all. Creates the record if there is
 * none.
 */
export async function setMachineModels(
  name: string,
  models: readonly string[] | undefined,
  means: MachineMeans,
): Promise<MachineChanged> {
  const changed = await writeModels(name, models, means);
  return { ...changed, replication: await means.keys.awaitReplica() };
}

async function writeModels(
  name: string,
  models: readonly string[] | undefined,
  { machines, clock, actor }: MachineMeans,
): Promise<Omit<MachineChanged, "replication">> {
  for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
    const before = await machines.find(name);
    if (before !== undefined && JSON.stringify(before.models) === JSON.stringify(models)) {
      return { outcome: "unchanged", record: before };
    }
    if (before === undefined && (await machines.list()).length >= machineRecordsMax) throw tooMany();
    const at = clock.wall();
    const { models: _, ...kept } = before ?? { name, version: 0, createdAt: at };
    const version = (before?.version ?? 0) + 1;
    const record = {
      ...kept,
      name,
      version,
      createdAt: before?.createdAt ?? at,
      changedAt: at,
      ...(models && { models }),
    };
    const was = before === undefined ? {} : { was: { models: before.models ?? everyModel } };
    const detail = { models: models ?? everyModel, ...was };
    const written = await machines.write(record, { at, ...actor, action: "machine_set", machine: name, name, detail });
    if (written === "written") return { outcome: "changed", record };
  }
  throw contended();
}

/**
 * Removes the record of a machine, which may then offer every model again. Returns undefined when there is no record.
 */
export async function removeMachine(
  name: string,
  { machines, clock, actor }: Omit<MachineMeans, "keys">,
): Promise<MachineRecord | undefined> {
  for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
    const record = await machines.find(name);
    if (record === undefined) return undefined;
    const detail = { models: everyModel, was: { models: record.models ?? everyModel } };
    const entry = { at: clock.wall(), ...actor, action: "machine_removed", machine: name, name, detail } as const;
    if ((await machines.remove(record, entry)) === "written") return record;
  }
  throw contended();
}

function contended(): Fault {
  return new Fault("backend_unavailable", { message: "Others keep changing this machine's record. Try again." });
}

function tooMany(): Fault {
  return new Fault("key_change_refused", {
    message: `There are ${machineRecordsMax} records of machines already (machineRecordsMax). Remove one first.`,
  });
}
