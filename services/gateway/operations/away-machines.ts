import type { ShownFleetMachine, ShownRouteMachine } from "#shared/fleet/shown-fleet.ts";
import type { MachineRecord, SeenMachine } from "#shared/records/machine-record.ts";
import { machineState } from "#shared/records/shown-machine.ts";
import { whyCordoned } from "../routing/explain-routing.ts";

/** Time for which `status` tells of a join line that somebody tried to use again. */
const joinReuseToldMs = 86_400_000;

/** Shows a machine that has a record and that this gateway does not hear; undefined if the record expects none. */
export function showAway(
  record: MachineRecord,
  { wallMs, lastSeen }: { readonly wallMs: number; readonly lastSeen: ReadonlyMap<string, SeenMachine> },
): ShownFleetMachine | undefined {
  const { name: machine, publicKey } = record;
  const pairing = machineState(record, wallMs);
  if (pairing === "unpaired") return undefined;
  const seen = publicKey === undefined ? undefined : lastSeen.get(publicKey);
  return {
    machine,
    epoch: null,
    status: "offline",
    state: "gone",
    pairing,
    connection: null,
    runtime: seen?.runtime ?? null,
    slots: 0,
    running: 0,
    queued: 0,
    queue_max: 0,
    strays: null,
    version: null,
    heard_ms_ago: seen === undefined ? null : Math.max(0, wallMs - seen.atMs),
    models: seen?.models ?? 0,
    open_jobs: 0,
    last_fault: null,
    takes_work: false,
    why: whyAbsent(record, wallMs),
  };
}

/** Shows the rank of a machine that has a record and that this gateway does not hear. */
export function showAwayRank(record: MachineRecord, wallMs: number): ShownRouteMachine | undefined {
  const pairing = machineState(record, wallMs);
  if (pairing === "unpaired" || pairing === "joining") return undefined;
  return {
    machine: record.name,
    rank: null,
    reason: pairing === "revoked" ? "revoked" : "offline",
    why: whyAbsent(record, wallMs),
    slots: 0,
    free_slots: 0,
    queued: 0,
    has_room: false,
    context_window: null,
    first_token_ms: null,
    tokens_per_second: null,
  };
}

function whyAbsent(record: MachineRecord, wallMs: number): string {
  const { name, join, revokedAt, cordon } = record;
  switch (machineState(record, wallMs)) {
    case "joining":
      return `has not used its join line yet, which is good until ${timeText(join?.expiresAt)}`;
    case "revoked":
      return `was revoked at ${timeText(revokedAt)} (trunkline machines pair ${name} makes a new line)`;
    default: {
      const remarks = [joinReuse(record, wallMs), cordon && whyCordoned(cordon.reason)];
      return ["paired, but not connected", ...remarks.filter((each) => each !== undefined)].join("; ");
    }
  }
}

/** Returns a warning for operators while the second use of a machine's join line is news. */
export function joinReuse({ join }: Pick<MachineRecord, "join">, wallMs: number): string | undefined {
  const { usedAgainAt, usedAgainFrom, usedFrom } = join ?? {};
  if (usedAgainAt === undefined || wallMs - usedAgainAt > joinReuseToldMs) return undefined;
  return `its join line was used from ${usedFrom} and again from ${usedAgainFrom}: revoke it if the first was not you`;
}

function timeText(wallMs: number | undefined): string {
  return wallMs === undefined
    ? "an unknown time"
    : `${new Date(wallMs).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}
