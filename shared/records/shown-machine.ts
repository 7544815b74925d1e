import { z } from "zod";
import { isoTime } from "../process/clock.ts";
import { machineName } from "../protocol/identifiers.ts";
import { type MachineRecord, machineLabels, type SeenMachine } from "./machine-record.ts";

/**
 * The state of a machine's record. `joining`: its join line was not used yet. `unpaired`: the record only says what the
 * machine may do, or its join line has expired.
 */
export const machineStates = ["unpaired", "joining", "paired", "cordoned", "revoked"] as const;
export type ShownMachineState = (typeof machineStates)[number];

/** Returns the state of a record. A revoked machine is `joining` again while it has a new join line. */
export function machineState(record: MachineRecord, nowMs: number): ShownMachineState {
  const { join, revokedAt, cordon, publicKey } = record;
  if (join !== undefined && join.usedAt === undefined && nowMs < join.expiresAt) return "joining";
  if (revokedAt !== undefined) return "revoked";
  if (cordon !== undefined) return "cordoned";
  return publicKey === undefined ? "unpaired" : "paired";
}

const time = z.iso.datetime();

/** A machine's record as the command line and the admin API show it. */
export const shownMachineRecord = z.strictObject({
  machine: machineName,
  state: z
    .enum(machineStates)
    .describe("joining: its join line was not used yet. unpaired: the record only says what the machine may do."),
  models: z.array(z.string()).readonly().nullable().describe("Patterns of the models it may offer; null for all."),
  public_key: z.string().nullable().describe("The key by which it proves itself; null before it was paired."),
  paired_at: time.nullable(),
  paired_by: z.string().nullable().describe("The author of the join line by which it was paired."),
  paired_from: z.string().nullable().describe("The address that used the join line."),
  join_expires_at: time
    .nullable()
    .describe("The time at which its join line expires; null when none waits to be used."),
  join_used_again: z
    .strictObject({ at: time, from: z.string() })
    .nullable()
    .describe("The first attempt to use its join line a second time, from a machine with another key."),
  last_seen_at: time
    .nullable()
    .describe(
      "The time at which a gateway last heard it, as noted every few minutes; null for a machine that was not paired.",
    ),
  cordon: z
    .strictObject({ reason: z.string(), at: time, by: z.string() })
    .nullable()
    .describe("The reason for which it gets no new jobs; null for a machine that gets jobs."),
  revoked_at: time.nullable(),
  labels: machineLabels.optional().describe("The labels by which routes name it; absent when it has none."),
  external: z
    .literal(true)
    .optional()
    .describe("True if its models run elsewhere, so that only routes that say so lead there; absent otherwise."),
  created_at: time,
  changed_at: time,
});
export type ShownMachineRecord = z.infer<typeof shownMachineRecord>;

export interface ShownAt {
  readonly nowMs: number;
  /** When machines were last heard, by public key. */
  readonly lastSeen?: ReadonlyMap<string, Pick<SeenMachine, "atMs">> | undefined;
}

export function showMachineRecord(record: MachineRecord, { nowMs, lastSeen }: ShownAt): ShownMachineRecord {
  const { models, publicKey, join, cordon, labels, external } = record;
  const state = machineState(record, nowMs);
  const { usedFrom, usedAgainAt, usedAgainFrom } = join ?? {};
  return {
    machine: record.name,
    state,
    models: models ?? null,
    public_key: publicKey ?? null,
    paired_at: timeOrNull(record.pairedAt),
    paired_by: record.pairedBy ?? null,
    paired_from: usedFrom ?? null,
    join_expires_at: state === "joining" ? timeOrNull(join?.expiresAt) : null,
    join_used_again: usedAgainAt === undefined ? null : { at: isoTime(usedAgainAt), from: usedAgainFrom ?? "" },
    last_seen_at: timeOrNull(lastSeen?.get(publicKey ?? "")?.atMs),
    cordon: cordon === undefined ? null : { reason: cordon.reason, at: isoTime(cordon.at), by: cordon.by },
    revoked_at: timeOrNull(record.revokedAt),
    ...(labels && { labels }),
    ...(external && { external }),
    created_at: isoTime(record.createdAt),
    changed_at: isoTime(record.changedAt),
  };
}

function timeOrNull(wallMs: number | undefined): string | null {
  return wallMs === undefined ? null : isoTime(wallMs);
}
