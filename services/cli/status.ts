import { Option, type Command } from "commander";
import { fleetListing, type FleetListing, type ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import { sleep } from "#shared/process/clock.ts";
import { exitCodes, StartFailure } from "#shared/process/start-failure.ts";
import { commandIn } from "./command-in.ts";
import { fleetTable, isReady } from "./fleet/fleet-table.ts";
import { redraw } from "./fleet/redraw.ts";
import { jsonOption, type GivenJson } from "./json-option.ts";
import {
  givenOperations,
  operationsUrlOption,
  whichGatewayHelp,
  type GivenOperations,
} from "./models/operations-options.ts";
import type { OperationsPort } from "./models/operations-port.ts";
import { untilInterrupted } from "./models/until-interrupted.ts";
import { widthOf, type Output, type Surroundings } from "./surroundings.ts";
import { onOneLine } from "./text/on-one-line.ts";
import { utcTime } from "./text/utc-time.ts";

interface Given extends GivenOperations, GivenJson {
  readonly watch?: true;
}

const redrawMs = 1_000;

/** Makes the command `trunkline status`. It reports errors as `trunkline keys` does. */
export function statusCommand(surroundings: Surroundings): Command {
  return commandIn("status", surroundings)
    .description("show every machine of the fleet, what it is busy with, and why it gets no work")
    .addOption(new Option("--watch", "show it anew each second until Ctrl-C"))
    .addOption(operationsUrlOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
"slots" are those in use and all, "queue" the jobs that wait and the most that may; "jobs" are those of the gateway that
is asked, "heard" is how long ago it heard the machine. "why" says why a machine gets no work, or less than others.
The exit code is 0 when at least one machine is ready, otherwise 69.

Examples:
  trunkline status
  trunkline status --watch
  trunkline status --json
${whichGatewayHelp}`,
    )
    .action(async ({ watch, json, ...given }: Given) => {
      const port = givenOperations(given, surroundings);
      if (watch) await watchFleet(port, { json }, surroundings);
      else await showOnce(port, { json }, surroundings);
    });
}

async function showOnce(
  port: OperationsPort,
  { json }: GivenJson,
  { stdout, stderr, environment }: Surroundings,
): Promise<void> {
  const fleet = await fleetAt(port);
  const { data: machines, problem } = fleet;
  if (json) stdout.write(lineOf(fleet));
  else if (machines.length > 0) stdout.write(tableFor(stdout, machines, environment));
  if (!machines.some(isReady)) throw new StartFailure(exitCodes.unavailable, whyNoneIsReady(fleet));
  if (problem !== null && !json) stderr.write(`This gateway has a problem: ${onOneLine(problem)}.\n`);
}

/**
 * Redraws the fleet until Ctrl-C. Fails if the first request fails. A later failure is shown, and the next request
 * follows.
 */
async function watchFleet(port: OperationsPort, { json }: GivenJson, surroundings: Surroundings): Promise<void> {
  const { stdout, clock, environment } = surroundings;
  const interrupted = untilInterrupted();
  const draw = json ? (block: string): void => void stdout.write(block) : redraw(stdout);
  const look = async (): Promise<string> => {
    const fleet = await fleetAt(port, interrupted.signal);
    if (json) return lineOf(fleet);
    const { data: machines, problem } = fleet;
    const table = machines.length === 0 ? "No machine is there.\n" : tableFor(stdout, machines, environment);
    const trouble = problem === null ? "" : `This gateway has a problem: ${onOneLine(problem)}.\n`;
    return `${utcTime(clock.wall())}\n${table}${trouble}\n`;
  };
  try {
    draw(await look());
    for (;;) {
      await sleep(clock, redrawMs, interrupted.signal);
      const block = await look().catch((error: unknown) => failedLook(error, json, clock.wall()));
      interrupted.signal.throwIfAborted();
      draw(block);
    }
  } catch (error) {
    if (!interrupted.signal.aborted) throw error;
  } finally {
    interrupted.release();
  }
}

function failedLook(error: unknown, json: true | undefined, nowMs: number): string {
  if (!(error instanceof StartFailure)) throw error;
  return json ? `${JSON.stringify({ error: error.message })}\n` : `${utcTime(nowMs)}\n${error.message}\n\n`;
}

async function fleetAt(port: OperationsPort, signal?: AbortSignal): Promise<FleetListing> {
  return port.get("/fleet", fleetListing, signal && { signal });
}

function whyNoneIsReady({ data: machines, problem }: FleetListing): string {
  const none = machines.length === 0 ? "No machine is there" : "No machine is ready";
  if (problem !== null) return `${none}: ${onOneLine(problem)}.`;
  return machines.length === 0 ? `${none}: start \`trunkline agent\` on one.` : `${none}.`;
}

function lineOf({ data: machines, problem }: FleetListing): string {
  return `${JSON.stringify({ machines, problem })}\n`;
}

function tableFor(
  stdout: Output,
  machines: readonly ShownFleetMachine[],
  environment: Surroundings["environment"],
): string {
  if (!stdout.isTTY) return fleetTable(machines);
  return fleetTable(machines, { widthMax: widthOf(stdout), coloured: !environment["NO_COLOR"] });
}
