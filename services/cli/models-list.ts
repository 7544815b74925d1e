import { type Command, Option } from "commander";
import {
  type Capabilities,
  type MachineState,
  modelListing,
  type ModelListing,
  type ShownMachine,
  type ShownModel,
} from "#shared/model/model.ts";
import { machineName } from "#shared/protocol/identifiers.ts";
import { type GivenJson, jsonOption, readBy, type Surroundings, widthOf } from "./command-line.ts";
import { givenOperations, type GivenOperations, operationsUrlOption, whichGatewayHelp } from "./operations-options.ts";
import type { OperationsPort } from "./operations-port.ts";
import { byteSize } from "./quantity-text.ts";
import { alignedTable } from "./table-text.ts";

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

const headings = ["id", "machine", "runtime", "capabilities", "window", "size", "MLX", "loaded"] as const;
const right = ["window", "size"] as const;
const bytesPerMb = 1_000_000;

const words: readonly (readonly [keyof Capabilities, string])[] = [
  ["completion", "chat"],
  ["vision", "vision"],
  ["embedding", "embed"],
  ["tools", "tools"],
  ["thinking", "think"],
];
const grouped = new Intl.NumberFormat("en-US");

/** Formats the models as a table. */
export function modelsTable(
  models: readonly ShownModel[],
  { widthMax }: { readonly widthMax?: number | undefined } = {},
): string {
  return alignedTable(
    headings,
    models.map((model) => [
      model.id,
      model.machine,
      model.runtime ?? "-",
      capabilityWords(model.capabilities),
      grouped.format(model.context_window),
      model.size_mb === 0 ? "-" : byteSize(model.size_mb * bytesPerMb),
      yesOrNo(model.apple_mlx),
      yesOrNo(model.loaded),
    ]),
    { right, wrap: ["id", "machine", "capabilities"], widthMax },
  );
}

function capabilityWords(capabilities: Capabilities): string {
  const able = words.flatMap(([capability, word]) => (capabilities[capability] ? [word] : []));
  return able.join(", ") || "-";
}

function yesOrNo(answer: boolean | null): string {
  if (answer === null) return "-";
  return answer ? "yes" : "no";
}
