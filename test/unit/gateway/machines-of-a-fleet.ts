import type { MachineRecord } from "#shared/records/machine-record.ts";
import type { Capabilities, Model } from "#shared/protocol/model.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import { frameVersion } from "#shared/protocol/frame.ts";

export const nothing: Capabilities = {
  completion: false,
  vision: false,
  embedding: false,
  tools: false,
  thinking: false,
};

export function modelOf(id: string, fields: Partial<Model> = {}): Model {
  return {
    id,
    object: "model",
    created: 1_767_225_600,
    owned_by: "test",
    context_window: 4_096,
    size_mb: 100,
    capabilities: { ...nothing, completion: true },
    runtime_profile: "auto",
    ...fields,
  };
}

/** A boot of this many milliseconds after 2026 began. */
export const bootAt = (ms: number): string => `${1_767_225_600_000 + ms}-0a1b2c3d`;

export const recordOf = (name: string, fields: Partial<MachineRecord> = {}): MachineRecord => ({
  name,
  version: 1,
  createdAt: 1,
  changedAt: 1,
  ...fields,
});

export function presenceOf(machine: string, fields: Partial<Presence> = {}): Presence {
  return {
    machine,
    epoch: bootAt(0),
    state: "ready",
    runtime: "stub",
    slots: 1,
    running: 0,
    queued: 0,
    queueMax: 8,
    catalogueDigest: "digest",
    wire: frameVersion,
    scale: 1,
    ...fields,
  };
}
