import { Option, type Command } from "commander";
import { fleetListing, type ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
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
import type { Output, Surroundings } from "./surroundings.ts";
import { utcTime } from "./text/utc-time.ts";

interface Given extends GivenOperations, GivenJson {
  readonly watch?: true;
}

const redrawMs = 1_000;

/** `trunkline status`. It tells what is wrong as `trunkline keys` does. */
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
  { stdout, environment }: Surroundings,
): Promise<void> {
  const machines = await machinesOf(port);
  if (json) stdout.write(lineOf(machines));
  else if (machines.length > 0) stdout.write(tableFor(stdout, machines, environment));
  if (machines.some(isReady)) return;
  throw new StartFailure(
    exitCodes.unavailable,
    machines.length === 0 ? "No machine is there: start `trunkline agent` on one." : "No machine is ready.",
  );
}

/** The first look must bring something; when a later one does not, that is shown and the next one is waited for. */
async function watchFleet(port: OperationsPort, { json }: GivenJson, surroundings: Surroundings): Promise<void> {
  const { stdout, clock, environment } = surroundings;
  const interrupted = untilInterrupted();
  const draw = json ? (block: string): void => void stdout.write(block) : redraw(stdout);
  const look = async (): Promise<string> => {
    const machines = await machinesOf(port, interrupted.signal);
    if (json) return lineOf(machines);
    const table = machines.length === 0 ? "No machine is there.\n" : tableFor(stdout, machines, environment);
    return `${utcTime(clock.wall())}\n${table}\n`;
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

async function machinesOf(port: OperationsPort, signal?: AbortSignal): Promise<readonly ShownFleetMachine[]> {
  return (await port.get("/fleet", fleetListing, signal && { signal })).data;
}

function lineOf(machines: readonly ShownFleetMachine[]): string {
  return `${JSON.stringify({ machines })}\n`;
}

function tableFor(
  stdout: Output,
  machines: readonly ShownFleetMachine[],
  environment: Surroundings["environment"],
): string {
  if (!stdout.isTTY) return fleetTable(machines);
  return fleetTable(machines, { widthMax: stdout.columns, coloured: !environment["NO_COLOR"] });
}
