import type { Command } from "commander";
import { machineTones, machineWord } from "#shared/fleet/fleet-words.ts";
import { machineOperations } from "#shared/admin/machine-operations.ts";
import type { FleetListing, ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import { sleep } from "#shared/process/clock.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { onOneLine } from "#shared/process/clean-text.ts";
import {
  commandIn,
  type JsonOption,
  type Output,
  type CliContext,
  untilInterrupted,
  widthOf,
} from "../terminal/command-line.ts";
import { asksGateway, givenOperations, type OperationsOptions, type OperationsPort } from "../site/operations-port.ts";
import { agoText, utcTime } from "../terminal/quantity-text.ts";
import { alignedTable, wrapText } from "../terminal/table-text.ts";

interface Options extends OperationsOptions, JsonOption {
  readonly watch?: true;
}

const redrawMs = 1_000;

export function statusCommand(context: CliContext): Command {
  return commandIn("status", context)
    .description("show every machine of the fleet, what it is busy with, and why it gets no work")
    .option("--watch", "show it anew each second until Ctrl-C")
    .with(
      asksGateway(`
"slots" are those in use and all, "queue" the jobs that wait and the most that may; "jobs" are those of the gateway that
is asked, "heard" is how long ago it heard the machine. "why" says why a machine gets no work, or less than others.
"paired" is there once a machine was paired: "tunnel" or "direct" for how a paired machine is connected, "away" for one
that is not, and "no" for a machine that this site has not paired.
The exit code is 0 when at least one machine is ready, otherwise 69.

Examples:
  trunkline status
  trunkline status --watch
  trunkline status --json
`),
    )
    .action(async ({ watch, json, ...given }: Options) => {
      const port = givenOperations(given, context);
      await (watch ? watchFleet : showOnce)(port, { json }, context);
    });
}

async function showOnce(port: OperationsPort, { json }: JsonOption, context: CliContext): Promise<void> {
  const { stdout, stderr } = context;
  const fleet = await port.ask(machineOperations.listMachines, {});
  const { data: machines } = fleet;
  if (json) stdout.write(lineOf(fleet));
  else if (machines.length > 0) stdout.write(tableFor(machines, context));
  if (!machines.some(isReady)) throw new StartFailure(exitCodes.unavailable, whyNoneIsReady(fleet));
  if (!json) stderr.write(troubleOf(fleet));
}

/**
 * Redraws the fleet until Ctrl-C. Fails if the first request fails. A later failure is shown, and the next request
 * follows.
 */
async function watchFleet(port: OperationsPort, { json }: JsonOption, context: CliContext): Promise<void> {
  const { stdout, clock } = context;
  using interrupted = untilInterrupted();
  const { signal } = interrupted;
  const draw = json ? (block: string): void => void stdout.write(block) : redraw(stdout);
  const look = async (): Promise<string> => {
    const fleet = await port.ask(machineOperations.listMachines, {}, signal);
    if (json) return lineOf(fleet);
    const table = fleet.data.length === 0 ? "No machine is there.\n" : tableFor(fleet.data, context);
    return `${utcTime(clock.wall())}\n${table}${troubleOf(fleet)}\n`;
  };
  try {
    draw(await look());
    for (;;) {
      await sleep(clock, redrawMs, signal);
      const block = await look().catch((error: unknown) => failedLook(error, json, clock.wall()));
      signal.throwIfAborted();
      draw(block);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

function failedLook(error: unknown, json: true | undefined, nowMs: number): string {
  if (!(error instanceof StartFailure)) throw error;
  return json ? `${JSON.stringify({ error: error.message })}\n` : `${utcTime(nowMs)}\n${error.message}\n\n`;
}

function whyNoneIsReady({ data: machines, problem }: FleetListing): string {
  const none = machines.length === 0 ? "No machine is there" : "No machine is ready";
  if (problem !== null) return `${none}: ${onOneLine(problem)}.`;
  return machines.length === 0 ? `${none}: start \`trunkline agent\` on one.` : `${none}.`;
}

function lineOf({ data: machines, problem, remark = null }: FleetListing): string {
  return `${JSON.stringify({ machines, problem, remark })}\n`;
}

/** Returns a line for what a gateway lacks and needs, and one for what it can do without. */
function troubleOf({ problem, remark }: FleetListing): string {
  const needed = problem === null ? "" : `This gateway has a problem: ${onOneLine(problem)}.\n`;
  const dispensable = typeof remark === "string" ? `This gateway serves, but ${onOneLine(remark)}.\n` : "";
  return needed + dispensable;
}

function tableFor(machines: readonly ShownFleetMachine[], { stdout, environment }: CliContext): string {
  return fleetTable(machines, { widthMax: widthOf(stdout), coloured: stdout.isTTY && !environment["NO_COLOR"] });
}

const headings = ["machine", "state", "paired", "runtime", "slots", "queue", "jobs", "models", "heard", "why"] as const;
const right = ["slots", "queue", "jobs", "models", "heard"] as const;

const colours = { good: "\u001b[32m", warn: "\u001b[33m", bad: "\u001b[31m" } as const;
const plain = "\u001b[39m";

/** True if a machine is ready and takes work, so that requests can count on it. */
export function isReady(machine: ShownFleetMachine): boolean {
  return machine.takes_work && machineWord(machine) === "ready";
}

/** Formats the machines of a fleet as a table, with the last fault of each below. */
export function fleetTable(
  machines: readonly ShownFleetMachine[],
  {
    widthMax = Infinity,
    coloured = false,
  }: { readonly widthMax?: number | undefined; readonly coloured?: boolean | undefined } = {},
): string {
  // A site that has paired no machine needs no column for it.
  const shownHeadings = headings.filter((each) => each !== "paired" || machines.some(isKnown));
  const rows = machines.map((machine) => shownHeadings.map((each) => cellsOf(machine)[each]));
  const states = machines.map(machineWord);
  const table = alignedTable(shownHeadings, rows, {
    right,
    wrap: ["machine", "why"],
    widthMax,
    paint(text, { heading, row }) {
      const state = states[row];
      return coloured && heading === "state" && state !== undefined
        ? `${colours[machineTones[state]]}${text}${plain}`
        : text;
    },
  });
  const faults = machines.flatMap(lastFaultOf).flatMap((line) => wrapText(line, widthMax));
  return table + faults.map((line) => `${line}\n`).join("");
}

function lastFaultOf({ machine, last_fault: last }: ShownFleetMachine): readonly string[] {
  if (!last) return [];
  const { code, model, reason, ms_ago: msAgo } = last;
  const because = reason === null ? "" : `: ${reason}`;
  return [onOneLine(`last fault of ${machine}, ${agoText(msAgo)} ago, ${model}: ${code}${because}`)];
}

/** True if the machine was paired, or has a join line. */
function isKnown({ pairing }: ShownFleetMachine): boolean {
  return typeof pairing === "string" && pairing !== "unpaired";
}

function cellsOf(machine: ShownFleetMachine): Readonly<Record<(typeof headings)[number], string>> {
  const { slots, running, queued, queue_max: queueMax, open_jobs: jobs, models, heard_ms_ago: heardMsAgo } = machine;
  return {
    machine: machine.machine,
    state: machineWord(machine),
    paired: isKnown(machine) ? (machine.connection ?? "away") : "no",
    runtime: machine.runtime ?? "-",
    slots: `${running}/${slots}`,
    queue: `${queued}/${queueMax}`,
    jobs: String(jobs),
    models: String(models),
    heard: heardMsAgo === null ? "-" : agoText(heardMsAgo),
    why: machine.why ?? "-",
  };
}

const home = "\u001b[H";
const clearScreen = "\u001b[2J";
const clearToLineEnd = "\u001b[K";
const clearBelow = "\u001b[J";
const defaultRows = 24;

/**
 * Returns a function that shows a block of lines. On a terminal each block replaces the one before, as far as the
 * screen has room. Elsewhere the blocks follow each other.
 */
export function redraw(output: Output): (block: string) => void {
  if (output.isTTY !== true) return (block) => void output.write(block);
  let drawn = false;
  return (block) => {
    const lines = block.split("\n").slice(0, -1);
    const rows = (output.rows ?? defaultRows) - 1;
    const hidden = lines.length - rows;
    const shown = hidden > 0 ? [...lines.slice(0, rows - 1), `… and ${hidden + 1} more`] : lines;
    const text = shown.map((line) => `${line}${clearToLineEnd}\n`).join("");
    output.write(`${drawn ? "" : clearScreen}${home}${text}${clearBelow}`);
    drawn = true;
  };
}
