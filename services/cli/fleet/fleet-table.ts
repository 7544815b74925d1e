import type { ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import { alignedTable } from "../text/aligned-table.ts";
import { cutText } from "../text/cut-text.ts";
import { onOneLine } from "../text/on-one-line.ts";

const headings = ["machine", "state", "runtime", "slots", "queue", "jobs", "models", "heard", "why"] as const;
const right = ["slots", "queue", "jobs", "models", "heard"] as const;

/** The displayed state of a machine: its own report, unless the gateway sees otherwise. */
export type ShownState = "ready" | "waiting" | "draining" | "suspect" | "offline" | "unknown" | "left out";

export function shownState({ status, state }: ShownFleetMachine): ShownState {
  if (status === "left_out") return "left out";
  if (status === "unknown") return "unknown";
  if (status === "offline" || state === "gone") return "offline";
  if (state === "draining") return "draining";
  if (state === "waiting") return "waiting";
  return status === "suspect" ? "suspect" : "ready";
}

/** True if a machine is ready and takes work, so that requests can count on it. */
export function isReady(machine: ShownFleetMachine): boolean {
  return machine.takes_work && shownState(machine) === "ready";
}

const colours: Readonly<Record<ShownState, string>> = {
  ready: "\u001b[32m",
  waiting: "\u001b[33m",
  draining: "\u001b[33m",
  suspect: "\u001b[33m",
  offline: "\u001b[31m",
  unknown: "\u001b[31m",
  "left out": "\u001b[31m",
};
const plain = "\u001b[39m";

/**
 * Formats the machines of a fleet, one a line. Cuts the end of lines that are wider than `widthMax`: the reasons come
 * last.
 */
export function fleetTable(
  machines: readonly ShownFleetMachine[],
  {
    widthMax = Infinity,
    coloured = false,
  }: { readonly widthMax?: number | undefined; readonly coloured?: boolean } = {},
): string {
  const [heading = "", ...lines] = alignedTable(headings, machines.map(cellsOf), { right })
    .split("\n")
    .slice(0, -1)
    .map((line) => cutText(line, widthMax));
  const column = heading.indexOf(headings[1]);
  const shown = machines.map((machine, place) => {
    const line = lines[place] ?? "";
    return coloured ? colouredAt(line, column, shownState(machine)) : line;
  });
  const faults = machines.flatMap(lastFaultOf).map((line) => cutText(line, widthMax));
  return [heading, ...shown, ...faults].map((line) => `${line}\n`).join("");
}

function lastFaultOf({ machine, last_fault: last }: ShownFleetMachine): readonly string[] {
  if (!last) return [];
  const { code, model, reason, ms_ago: msAgo } = last;
  const because = reason === null ? "" : `: ${reason}`;
  return [onOneLine(`last fault of ${machine}, ${agoText(msAgo)} ago, ${model}: ${code}${because}`)];
}

function cellsOf(machine: ShownFleetMachine): readonly string[] {
  const { slots, running, queued, queue_max: queueMax, open_jobs: jobs, models, heard_ms_ago: heardMsAgo } = machine;
  return [
    machine.machine,
    shownState(machine),
    machine.runtime ?? "-",
    `${running}/${slots}`,
    `${queued}/${queueMax}`,
    String(jobs),
    String(models),
    agoText(heardMsAgo),
    machine.why ?? "-",
  ];
}

const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/** Formats a past duration in short: `0.4 s`, `12 s`, `3 h`. */
function agoText(ms: number): string {
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`;
  const [unit, unitMs] = units.find(([, each]) => ms >= 2 * each) ?? ["s", 1_000];
  return `${Math.floor(ms / unitMs)} ${unit}`;
}

function colouredAt(line: string, column: number, state: ShownState): string {
  if (line.slice(column, column + state.length) !== state) return line;
  const end = column + state.length;
  return `${line.slice(0, column)}${colours[state]}${state}${plain}${line.slice(end)}`;
}
