import { machineTones, machineWord } from "#shared/fleet/fleet-words.ts";
import { machineOperations } from "#shared/admin/machine-operations.ts";
import type { FleetListing, ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import { sleep } from "#shared/process/clock.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { onOneLine } from "#shared/process/clean-text.ts";
import {
  type CliCommand,
  commandIn,
  type JsonOption,
  type Output,
  type CliContext,
  type CommandResult,
  widthOf,
} from "../terminal/command-line.ts";
import { untilInterrupted } from "../terminal/interrupt.ts";
import { atGateway, type OperationsPort } from "../site/operations-port.ts";
import { agoText, utcTime } from "../terminal/quantity-text.ts";
import { type TextColumn, tableOf, wrapText } from "../terminal/table-text.ts";

interface Options extends JsonOption {
  readonly watch?: true;
}

const redrawMs = 1_000;

export function statusCommand(context: CliContext): CliCommand {
  return commandIn("status", context)
    .description("show every machine of the fleet, what it is busy with, and why it gets no work")
    .option("--watch", "show it anew each second until Ctrl-C")
    .more(`
"slots" are those in use and all, "queue" the jobs that wait and the most that may; "jobs" are those of the gateway that
is asked, "heard" is how long ago it heard the machine. "why" says why a machine gets no work, or less than others.
"paired" is there once a machine was paired: "tunnel" or "direct" for how a paired machine is connected, "away" for one
that is not, and "no" for a machine that this site has not paired.
The exit code is 0 when at least one machine is ready, otherwise 69.

Examples:
  trunkline status
  trunkline status --watch
  trunkline status --json`)
    .does(atGateway, async (port, { watch, json }: Options) => {
      if (!watch) return lookOnce(port, context);
      await watchFleet(port, { json }, context);
      return undefined;
    });
}

async function lookOnce(port: OperationsPort, context: CliContext): Promise<CommandResult> {
  const fleet = await port.ask(machineOperations.listMachines, {});
  const isAnyReady = fleet.data.some(isReady);
  return {
    answer: answerOf(fleet),
    text: tableFor(fleet.data, context),
    remark: isAnyReady ? troubleOf(fleet) : "",
    failure: isAnyReady ? undefined : new StartFailure(exitCodes.unavailable, whyNoneIsReady(fleet)),
  };
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
    if (json) return `${JSON.stringify(answerOf(fleet))}\n`;
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

function answerOf({ data: machines, problem, remark = null }: FleetListing): object {
  return { machines, problem, remark };
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

const columns: readonly TextColumn<ShownFleetMachine>[] = [
  ["machine", ({ machine }) => machine, "wrap"],
  ["state", machineWord],
  ["paired", (machine) => (isKnown(machine) ? (machine.connection ?? "away") : "no")],
  ["runtime", ({ runtime }) => runtime ?? "-"],
  ["slots", ({ running, slots }) => `${running}/${slots}`, "right"],
  ["queue", ({ queued, queue_max: queueMax }) => `${queued}/${queueMax}`, "right"],
  ["jobs", (machine) => String(machine.open_jobs), "right"],
  ["models", ({ models }) => String(models), "right"],
  ["heard", ({ heard_ms_ago: ms }) => (ms === null ? "-" : agoText(ms)), "right"],
  ["why", ({ why }) => why ?? "-", "wrap"],
];

const colours = { good: "\u001b[32m", warn: "\u001b[33m", bad: "\u001b[31m" } as const;
const plain = "\u001b[39m";

/** True if a machine is ready and takes work, so that requests can count on it. */
export function isReady(machine: ShownFleetMachine): boolean {
  return machine.takes_work && machineWord(machine) === "ready";
}

interface FleetLayout {
  readonly widthMax?: number | undefined;
  readonly coloured?: boolean | undefined;
}

/** Formats the machines of a fleet as a table, with the last fault of each below. */
export function fleetTable(
  machines: readonly ShownFleetMachine[],
  { widthMax = Infinity, coloured = false }: FleetLayout = {},
): string {
  // A site that has paired no machine needs no column for it.
  const shown = columns.filter(([heading]) => heading !== "paired" || machines.some(isKnown));
  const states = machines.map(machineWord);
  const table = tableOf(shown, machines, {
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
