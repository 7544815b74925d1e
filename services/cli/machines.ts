import { Argument, Option, type Command } from "commander";
import { replicatedIn } from "#shared/keys/change-key.ts";
import {
  modelPatterns,
  removeMachine,
  setMachineModels,
  showMachineRecord,
  type ShownMachineRecord,
} from "#shared/machines/machine-record.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { machineName } from "#shared/protocol/identifiers.ts";
import { commaList, commandIn, type GivenJson, jsonOption, readBy, type Surroundings } from "./command-line.ts";
import { actor, replicationLine, whichStoreHelp, withKeyStore } from "./with-key-store.ts";
import { alignedTable, cutText } from "./table-text.ts";
import { utcTime } from "./quantity-text.ts";

const modelsWidthMax = 80;

/** Makes the command `trunkline machines …`. It reports errors as `trunkline keys` does. */
export function machinesCommand(surroundings: Surroundings): Command {
  const machines = commandIn("machines", surroundings)
    .description("say which models a machine may offer")
    .addHelpText(
      "after",
      `
A machine without a record may offer every model. The models that a record does not permit are not listed, and no
request for them goes there; "trunkline status" and "trunkline route" say so. All gateways follow at once.

Examples:
  trunkline machines list
  trunkline machines set attic --models 'llama*,qwen*'
  trunkline machines remove attic
${whichStoreHelp}`,
    );
  addList(machines, surroundings);
  addSet(machines, surroundings);
  addRemove(machines, surroundings);
  return machines;
}

function addList(machines: Command, surroundings: Surroundings): void {
  const { stdout, stderr } = surroundings;
  machines
    .command("list", { isDefault: true })
    .description("show which models each machine with a record may offer")
    .addOption(jsonOption())
    .addHelpText("after", "\nExamples:\n  trunkline machines list\n  trunkline machines list --json")
    .action(({ json }: GivenJson) =>
      withKeyStore(surroundings, { json }, async ({ machines: store }) => {
        const shown = (await store.list()).map(showMachineRecord);
        if (json) stdout.write(`${JSON.stringify(shown)}\n`);
        else if (shown.length > 0) stdout.write(tableOf(shown));
        else stderr.write("No machine has a record, so that each may offer every model.\n");
      }),
    );
}

function addSet(machines: Command, surroundings: Surroundings): void {
  const { stdout, stderr, clock } = surroundings;
  machines
    .command("set")
    .description("set which models a machine may offer")
    .addArgument(machineArgument())
    .addOption(
      new Option("--models <patterns>", "the models it may offer, with commas between")
        .argParser(readBy(commaList.pipe(modelPatterns)))
        .makeOptionMandatory(),
    )
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
A pattern is a model id (llama3.2:3b), a name with all its variants (llama3.2), or one in which * stands for anything
(qwen*). Quote patterns, or the shell takes the * for itself. The machine need not be there yet.

Examples:
  trunkline machines set attic --models 'llama*,qwen*'
  trunkline machines set attic --models '*'`,
    )
    .action((name: string, { models, json }: { readonly models: readonly string[] } & GivenJson) =>
      withKeyStore(surroundings, { json }, async ({ machines: store, keys }) => {
        const changed = await setMachineModels(name, models, { machines: store, keys, clock, actor: actor() });
        const { record, outcome } = changed;
        const shown = showMachineRecord(record);
        const said = `${name} ${outcome === "changed" ? "may" : "might before, and may"} offer ${modelsText(shown)}\n`;
        stdout.write(json ? `${JSON.stringify({ ...shown, outcome, ...replicatedIn(changed) })}\n` : said);
        stderr.write(replicationLine(changed));
      }),
    );
}

function addRemove(machines: Command, surroundings: Surroundings): void {
  const { stdout, clock } = surroundings;
  machines
    .command("remove")
    .description("remove the record of a machine, which may offer every model again")
    .addArgument(machineArgument())
    .addOption(jsonOption())
    .addHelpText("after", "\nExample:\n  trunkline machines remove attic")
    .action((name: string, { json }: GivenJson) =>
      withKeyStore(surroundings, { json }, async ({ machines: store, place }) => {
        const record = await removeMachine(name, { machines: store, clock, actor: actor() });
        if (record === undefined) {
          throw new StartFailure(
            exitCodes.failed,
            `There is no record of a machine ${name} in ${place}: \`trunkline machines list\` shows all.`,
          );
        }
        const said = `${name} has no record any more, and may offer every model\n`;
        stdout.write(json ? `${JSON.stringify({ machine: name, outcome: "removed" })}\n` : said);
      }),
    );
}

function machineArgument(): Argument {
  return new Argument("<name>", "the name of the machine (TRUNKLINE_MACHINE there)").argParser(readBy(machineName));
}

function tableOf(shown: readonly ShownMachineRecord[]): string {
  return alignedTable(
    ["machine", "models", "changed"],
    shown.map((record) => [record.machine, cutText(modelsText(record), modelsWidthMax), utcTime(record.changed_at)]),
  );
}

function modelsText({ models }: ShownMachineRecord): string {
  return models?.join(", ") ?? "any";
}
