import { Argument, Option } from "commander";
import { commaList } from "#shared/process/config.ts";
import { runOn } from "#shared/admin/run-on.ts";
import { machineOperations } from "#shared/admin/machine-operations.ts";
import { defaultCordonReason } from "#shared/records/change-machine.ts";
import { cordonReason, machineLabels, modelPatterns } from "#shared/records/machine-record.ts";
import { machineName } from "#shared/protocol/identifiers.ts";
import {
  type CliCommand,
  type JsonOption,
  none,
  type OrNone,
  readBy,
  readByUnless,
  type CliContext,
} from "../terminal/command-line.ts";
import { tellChange } from "../site/with-key-store.ts";

export function machineArgument(): Argument {
  return new Argument("<name>", "the name of the machine").argParser(readBy(machineName));
}

export function modelsOption(): Option {
  const what = "the models it may offer, with commas between";
  return new Option("--models <patterns>", what).argParser(readBy(commaList.pipe(modelPatterns)));
}

export const patternsHelp = `
A pattern is a model id (llama3.2:3b), a name with all its variants (llama3.2), or one in which * stands for anything
(qwen*). Quote patterns, or the shell takes the * for itself.`;

export function modelsText({ models }: { readonly models: readonly string[] | null }): string {
  return models?.join(", ") ?? "any";
}

/** Adds the commands that change the name and the state of a machine, and those that say what it may do. */
export function addChanges(machines: CliCommand, context: CliContext): void {
  addStates(machines, context);
  addRights(machines, context);
}

function addStates(machines: CliCommand, context: CliContext): void {
  machines
    .command("rename")
    .description("give a paired machine another name")
    .addArgument(machineArgument())
    .argument("<new-name>", "its new name", readBy(machineName))
    .json()
    .more(`
The machine keeps its key and learns its new name by itself. No request is refused meanwhile: what runs under the old name
has 30 seconds to finish. The old name is free at once; another machine that takes it ends what still runs under it.

Example:
  trunkline machines rename attic loft`)
    .action((machine: string, name: string, given: JsonOption) =>
      tellChange(context, given, async (store) => {
        const answer = await runOn(store, machineOperations.renameMachine, { params: { machine }, body: { name } });
        return [answer, `${machine} is called ${answer.outcome === "unchanged" ? "so already" : `${name} now`}`];
      }),
    );

  machines
    .command("revoke")
    .description("take a machine's key back for good")
    .addArgument(machineArgument())
    .json()
    .more(`
Its connection and its jobs end within a second at all gateways, and its key never works again. A join line that was not
used is withdrawn. "trunkline machines pair" makes a new line for the same name.

Example:
  trunkline machines revoke attic`)
    .action((machine: string, given: JsonOption) =>
      tellChange(context, given, async (store) => {
        const answer = await runOn(store, machineOperations.revokeMachine, { params: { machine } });
        const said = answer.outcome === "unchanged" ? "was revoked before" : "is revoked: its key never works again";
        return [answer, `${machine} ${said}`];
      }),
    );

  machines
    .command("cordon")
    .description("give a machine no new jobs; those that run finish")
    .addArgument(machineArgument())
    .option("--reason <text>", "why, as status shows it", readBy(cordonReason), defaultCordonReason)
    .json()
    .more(`
It stays connected and cordoned until "uncordon", also after a restart of everything. "drain" waits for its jobs too.

Examples:
  trunkline machines cordon attic
  trunkline machines cordon attic --reason 'new fans on Friday'`)
    .action((machine: string, { reason, ...given }: { readonly reason: string } & JsonOption) =>
      tellChange(context, given, async (store) => {
        const isNew = (await store.machines.find(machine)) === undefined;
        const answer = await runOn(store, machineOperations.cordonMachine, { params: { machine }, body: { reason } });
        const beware = isNew ? " (it had no record before: is that its name?)" : "";
        const said = answer.outcome === "unchanged" ? "was cordoned before" : `gets no new jobs${beware}`;
        return [answer, `${machine} ${said}`];
      }),
    );

  machines
    .command("uncordon")
    .description("give a machine jobs again")
    .addArgument(machineArgument())
    .json()
    .more("\nExample:\n  trunkline machines uncordon attic")
    .action((machine: string, given: JsonOption) =>
      tellChange(context, given, async (store) => {
        const answer = await runOn(store, machineOperations.uncordonMachine, { params: { machine } });
        return [answer, `${machine} ${answer.outcome === "unchanged" ? "was not cordoned" : "gets jobs again"}`];
      }),
    );

  machines
    .command("remove")
    .description("remove the record of a machine that is not paired")
    .addArgument(machineArgument())
    .json()
    .more(`
A machine without a record may offer every model, if its own credentials let it in. The record of a paired machine can be
removed an hour after it was revoked.

Example:
  trunkline machines remove attic`)
    .action((machine: string, given: JsonOption) =>
      tellChange(context, given, async (store) => {
        await runOn(store, machineOperations.removeMachineRecord, { params: { machine } });
        return [{ machine, outcome: "removed" }, `${machine} has no record any more`];
      }),
    );
}

function addRights(machines: CliCommand, context: CliContext): void {
  machines
    .command("models")
    .alias("set")
    .description("set which models a machine may offer")
    .addArgument(machineArgument())
    .addOption(modelsOption().makeOptionMandatory())
    .json()
    .more(`${patternsHelp} The machine need not be there yet. Models that its record does not permit are not listed, and
no request for them goes there.

Examples:
  trunkline machines models attic --models 'llama*,qwen*'
  trunkline machines models attic --models '*'`)
    .action((machine: string, { models, ...given }: { readonly models: readonly string[] } & JsonOption) =>
      tellChange(context, given, async (store) => {
        const answer = await runOn(store, machineOperations.setMachineRecord, {
          params: { machine },
          body: { models },
        });
        const may = answer.outcome === "unchanged" ? "might before, and may" : "may";
        return [answer, `${machine} ${may} offer ${modelsText({ models })}`];
      }),
    );

  machines
    .command("labels")
    .description("set the labels by which routes name a machine")
    .addArgument(machineArgument())
    .requiredOption(
      "--labels <labels>",
      "its labels, with commas between, or none",
      readByUnless([none], commaList.pipe(machineLabels)),
    )
    .json()
    .more(`
A route's target may ask for a label ("trunkline routes set"). The labels take the place of those that the machine had.

Examples:
  trunkline machines labels attic --labels fast,mac
  trunkline machines labels attic --labels none`)
    .action((machine: string, given: { readonly labels: OrNone<readonly string[]> } & JsonOption) =>
      tellChange(context, given, async (store) => {
        const body = { labels: given.labels === none ? [] : given.labels };
        const answer = await runOn(store, machineOperations.labelMachine, { params: { machine }, body });
        return [answer, `${machine} has ${answer.labels ? `the labels ${answer.labels.join(", ")}` : "no labels"}`];
      }),
    );

  machines
    .command("external")
    .description("say that a machine's models run elsewhere, such as at a cloud")
    .addArgument(machineArgument())
    .option("--off", "they do not: the machine gets requests as any other does")
    .json()
    .more(`
An agent whose model server is somebody else's sends them every prompt that it gets. A machine with this mark gets a
request only if a route says so ("trunkline routes set") and the key was issued with --external. Mark the machine before
it connects: "trunkline machines pair --external".

Examples:
  trunkline machines external cloud
  trunkline machines external cloud --off`)
    .action((machine: string, { off, ...given }: { readonly off?: true } & JsonOption) =>
      tellChange(context, given, async (store) => {
        const body = { external: off === undefined };
        const answer = await runOn(store, machineOperations.markMachine, { params: { machine }, body });
        const said = off
          ? "is not external: any request may go there"
          : "is external: only routes that say so lead there";
        return [answer, `${machine} ${said}`];
      }),
    );
}
