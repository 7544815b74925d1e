import { Option, type Command } from "commander";
import { modelListing, type MachineState, type ModelListing, type ShownMachine } from "#shared/model/shown-model.ts";
import { machineName } from "#shared/protocol/identifiers.ts";
import { jsonOption, type GivenJson } from "../json-option.ts";
import { readBy } from "../read-by.ts";
import { widthOf, type Surroundings } from "../surroundings.ts";
import { modelsTable } from "./models-table.ts";
import { givenOperations, operationsUrlOption, whichGatewayHelp, type GivenOperations } from "./operations-options.ts";
import type { OperationsPort } from "./operations-port.ts";

interface Given extends GivenOperations, GivenJson {
  readonly machine?: string;
}

export function addList(models: Command, surroundings: Surroundings): void {
  const { stdout, stderr } = surroundings;
  models
    .command("list", { isDefault: true })
    .description("show what every machine offers at this moment; what `trunkline models` alone does too")
    .addOption(new Option("--machine <name>", "only of this machine").argParser(readBy(machineName)))
    .addOption(operationsUrlOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
The window is in tokens. "loaded" says whether a model lies in memory now, and "-" that its runtime does not tell.
Machines that could not be asked are named on standard error.

Examples:
  trunkline models
  trunkline models --machine attic
  trunkline models --json
${whichGatewayHelp}`,
    )
    .action(async ({ machine, json, ...given }: Given) => {
      const { data, machines } = await listModels(givenOperations(given, surroundings), machine);
      if (json) {
        stdout.write(`${JSON.stringify({ models: data, machines })}\n`);
        return;
      }
      if (data.length > 0) stdout.write(modelsTable(data, { widthMax: widthOf(stdout) }));
      else if (machines.some(isListed))
        stderr.write("There is no model yet; `trunkline models pull <name>` gets one.\n");
      else if (machines.length === 0) stderr.write("No machine is there.\n");
      for (const each of machines) {
        const why = notListed[each.state];
        if (why !== undefined) stderr.write(`Not listed: ${each.machine}, which ${why}.\n`);
      }
    });
}

export function listModels(port: OperationsPort, machine?: string): Promise<ModelListing> {
  const query = machine === undefined ? "" : `?machine=${encodeURIComponent(machine)}`;
  return port.get(`/models${query}`, modelListing);
}

function isListed({ state }: ShownMachine): boolean {
  return state === "listed";
}

const notListed: Readonly<Record<MachineState, string | undefined>> = {
  listed: undefined,
  no_runtime: "has no model server that answers",
  no_answer: "did not answer in time",
  stopping: "is draining",
  offline: "is not reachable",
};
