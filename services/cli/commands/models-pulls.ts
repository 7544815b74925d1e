import { z } from "zod";
import { machineOperations } from "#shared/admin/machine-operations.ts";
import type { ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { machineName } from "#shared/protocol/identifiers.ts";
import { modelIdCharactersMax } from "#shared/protocol/model.ts";
import { roomiest } from "#shared/placing/roomiest.ts";
import {
  givenOperations,
  type OperationsOptions,
  type OperationsPort,
  operationsUrlOption,
  whichGatewayHelp,
} from "../site/operations-port.ts";
import { type CliCommand, type CliContext, type JsonOption, readBy, widthOf } from "../terminal/command-line.ts";
import { byteSize } from "../terminal/quantity-text.ts";
import { alignedTable } from "../terminal/table-text.ts";

type ShownPull = NonNullable<ShownFleetMachine["memory"]>["pulls"][number];
type PullAt = ShownPull & { readonly machine: string };

export function addPulls(models: CliCommand, context: CliContext): void {
  const { stdout, stderr } = context;
  const pulls = models.command("pulls").description("show the pulls of all machines; stop one").more(`
A pull goes on when the terminal that began it is closed. Pulls that ended in the last 10 minutes are shown too.

Examples:
  trunkline models pulls
  trunkline models pulls stop qwen3:8b
${whichGatewayHelp}`);
  pulls
    .command("list", { isDefault: true })
    .description("show the pulls of all machines; what `trunkline models pulls` alone does too")
    .addOption(operationsUrlOption())
    .json()
    .more("\nExamples:\n  trunkline models pulls\n  trunkline models pulls --json")
    .action(async ({ json, ...given }: OperationsOptions & JsonOption) => {
      const all = pullsOf(await machinesOf(givenOperations(given, context)));
      if (json) stdout.write(`${JSON.stringify({ pulls: all })}\n`);
      else if (all.length > 0) stdout.write(pullsTable(all, widthOf(stdout)));
      else stderr.write("Nothing is being pulled; `trunkline models pull <name>` gets a model.\n");
    });
  pulls
    .command("stop")
    .description("stop a pull, for all who wait for it")
    .argument(
      "<model>",
      "the model, as `trunkline models pulls` lists it",
      readBy(z.string().max(modelIdCharactersMax)),
    )
    .option("--machine <name>", "the machine; may be left out where one pulls it", readBy(machineName))
    .addOption(operationsUrlOption())
    .json()
    .more("\nExample:\n  trunkline models pulls stop qwen3:8b")
    .action(async (model: string, given: OperationsOptions & JsonOption & { readonly machine?: string }) => {
      const port = givenOperations(given, context);
      const machine = given.machine ?? pullerOf(await machinesOf(port), model);
      if (machine === undefined) {
        throw new StartFailure(
          exitCodes.failed,
          `No machine pulls ${model}: \`trunkline models pulls\` shows all pulls.`,
        );
      }
      const { signal } = new AbortController();
      const work = port.work("stop", { machine, model }, signal);
      for await (const _ of work);
      stdout.write(
        `${given.json ? JSON.stringify({ action: "stop", model, machine }) : `Stopped the pull of ${model} on ${machine}.`}\n`,
      );
    });
}

/** Returns the machine that is to pull a model: the one that does already, or else the roomiest that may. */
export async function pullingMachine(port: OperationsPort, model: string): Promise<string> {
  const machines = (await machinesOf(port)).filter(({ takes_work: takesWork }) => takesWork);
  const chosen = pullerOf(machines, model) ?? roomiest(machines);
  // Agents before 0.3 do not tell whether they may pull; the only machine is asked, and says it itself.
  if (chosen !== undefined) return chosen;
  const [only, ...others] = machines;
  if (only !== undefined && others.length === 0) return only.machine;
  throw new StartFailure(
    exitCodes.unavailable,
    machines.length === 0
      ? "No machine is ready: `trunkline status` says why."
      : "No machine may pull models: TRUNKLINE_MANAGE on one has to name pull. --machine asks a machine all the same.",
  );
}

async function machinesOf(port: OperationsPort): Promise<readonly ShownFleetMachine[]> {
  return (await port.ask(machineOperations.listMachines, {})).data;
}

function pullsOf(machines: readonly ShownFleetMachine[]): readonly PullAt[] {
  return machines.flatMap(({ machine, memory }) => (memory?.pulls ?? []).map((pull) => ({ ...pull, machine })));
}

function pullerOf(machines: readonly ShownFleetMachine[], model: string): string | undefined {
  return pullsOf(machines).find((pull) => pull.model === model && pull.state === "pulling")?.machine;
}

export function pullsTable(pulls: readonly PullAt[], widthMax?: number): string {
  const progress = ({ percent, totalMb }: ShownPull): string =>
    percent === undefined || totalMb === undefined ? "-" : `${percent} % of ${byteSize(totalMb * 1_000_000)}`;
  const rows = pulls.map((pull) => [pull.model, pull.machine, pull.state, progress(pull), pull.status]);
  return alignedTable(["model", "machine", "state", "progress", "status"], rows, {
    wrap: ["model", "machine", "status"],
    widthMax,
  });
}
