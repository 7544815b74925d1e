import { z } from "zod";
import { machineOperations } from "#shared/admin/machine-operations.ts";
import type { ShownFleetMachine, ShownPull } from "#shared/fleet/shown-fleet.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { machineName } from "#shared/protocol/identifiers.ts";
import { modelIdCharactersMax } from "#shared/protocol/model.ts";
import { roomiest } from "#shared/placing/roomiest.ts";
import { atGateway, type OperationsPort, operationsUrlOption, whichGatewayHelp } from "../site/operations-port.ts";
import { type CliCommand, readBy } from "../terminal/command-line.ts";
import { byteSize } from "../terminal/quantity-text.ts";
import { type TextColumn, listed } from "../terminal/table-text.ts";

type PullAt = ShownPull & { readonly machine: string };

const pullColumns: readonly TextColumn<PullAt>[] = [
  ["model", ({ model }) => model, "wrap"],
  ["machine", ({ machine }) => machine, "wrap"],
  ["state", ({ state }) => state],
  ["progress", progressText],
  ["status", ({ status }) => status, "wrap"],
];

/** The gateway, without the help that `trunkline models pulls` has itself. */
const atNamedGateway: typeof atGateway = { ...atGateway, prepare: (pulls) => pulls.addOption(operationsUrlOption()) };

export function addPulls(models: CliCommand): void {
  const group = models.command("pulls").description("show the pulls of all machines; stop one").more(`
A pull goes on when the terminal that began it is closed. Pulls that ended in the last 10 minutes are shown too.

Examples:
  trunkline models pulls
  trunkline models pulls stop qwen3:8b
${whichGatewayHelp}`);
  group
    .command("list", { isDefault: true })
    .description("show the pulls of all machines; what `trunkline models pulls` alone does too")
    .more("\nExamples:\n  trunkline models pulls\n  trunkline models pulls --json")
    .does(atNamedGateway, async (port) => {
      const pulls = pullsOf(await machinesOf(port));
      const none = "Nothing is being pulled; `trunkline models pull <name>` gets a model.";
      return { answer: { pulls }, ...listed(pullColumns, pulls, none) };
    });
  group
    .sub("stop", "stop a pull, for all who wait for it")
    .argument(
      "<model>",
      "the model, as `trunkline models pulls` lists it",
      readBy(z.string().max(modelIdCharactersMax)),
    )
    .option("--machine <name>", "the machine; may be left out where one pulls it", readBy(machineName))
    .more("\nExample:\n  trunkline models pulls stop qwen3:8b")
    .does(atNamedGateway, async (port, model: string, given: { readonly machine?: string }) => {
      const machine = given.machine ?? pullerOf(await machinesOf(port), model);
      if (machine === undefined) {
        const message = `No machine pulls ${model}: \`trunkline models pulls\` shows all pulls.`;
        throw new StartFailure(exitCodes.failed, message);
      }
      for await (const _ of port.work("stop", { machine, model }, new AbortController().signal));
      return { answer: { action: "stop", model, machine }, text: `Stopped the pull of ${model} on ${machine}.` };
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

function progressText({ percent, totalMb, leftMs }: ShownPull): string {
  if (percent === undefined || totalMb === undefined) return "-";
  const left = leftMs === undefined ? "" : `, ${Math.ceil(leftMs / 1_000)} s left`;
  return `${percent} % of ${byteSize(totalMb * 1_000_000)}${left}`;
}
