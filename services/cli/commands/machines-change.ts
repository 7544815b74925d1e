import { Argument, Option } from "commander";
import { commaList } from "#shared/process/config.ts";
import { runOn } from "#shared/admin/run-on.ts";
import { machineOperations } from "#shared/admin/machine-operations.ts";
import { defaultCordonReason } from "#shared/records/change-machine.ts";
import { cordonReason, machineLabels, modelPatterns } from "#shared/records/machine-record.ts";
import { machineName } from "#shared/protocol/identifiers.ts";
import { type CliCommand, none, type OrNone, readBy, readByUnless } from "../terminal/command-line.ts";
import { onStore } from "../site/with-key-store.ts";

const { cordonMachine, labelMachine, markMachine, removeMachineRecord, renameMachine } = machineOperations;
const { revokeMachine, setMachineRecord, uncordonMachine } = machineOperations;

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

/** Adds the commands that change the name and the state of a machine. */
export function addStates(machines: CliCommand): void {
  machines
    .sub("rename", "give a paired machine another name", machineArgument())
    .argument("<new-name>", "its new name", readBy(machineName))
    .more(`
The machine keeps its key and learns its new name by itself. No request is refused meanwhile: what runs under the old name
has 30 seconds to finish. The old name is free at once; another machine that takes it ends what still runs under it.

Example:
  trunkline machines rename attic loft`)
    .does(onStore, async (store, machine: string, name: string) => {
      const answer = await runOn(store, renameMachine, { params: { machine }, body: { name } });
      return { answer, text: `${machine} is called ${answer.outcome === "unchanged" ? "so already" : `${name} now`}` };
    });

  machines
    .sub("revoke", "take a machine's key back for good", machineArgument())
    .more(`
Its connection and its jobs end within a second at all gateways, and its key never works again. A join line that was not
used is withdrawn. "trunkline machines pair" makes a new line for the same name.

Example:
  trunkline machines revoke attic`)
    .does(onStore, async (store, machine: string) => {
      const answer = await runOn(store, revokeMachine, { params: { machine } });
      const said = answer.outcome === "unchanged" ? "was revoked before" : "is revoked: its key never works again";
      return { answer, text: `${machine} ${said}` };
    });

  machines
    .sub("cordon", "give a machine no new jobs; those that run finish", machineArgument())
    .option("--reason <text>", "why, as status shows it", readBy(cordonReason), defaultCordonReason)
    .more(`
It stays connected and cordoned until "uncordon", also after a restart of everything. "drain" waits for its jobs too.

Examples:
  trunkline machines cordon attic
  trunkline machines cordon attic --reason 'new fans on Friday'`)
    .does(onStore, async (store, machine: string, { reason }: { readonly reason: string }) => {
      const isNew = (await store.machines.find(machine)) === undefined;
      const answer = await runOn(store, cordonMachine, { params: { machine }, body: { reason } });
      const beware = isNew ? " (it had no record before: is that its name?)" : "";
      const said = answer.outcome === "unchanged" ? "was cordoned before" : `gets no new jobs${beware}`;
      return { answer, text: `${machine} ${said}` };
    });

  machines
    .sub("uncordon", "give a machine jobs again", machineArgument())
    .more("\nExample:\n  trunkline machines uncordon attic")
    .does(onStore, async (store, machine: string) => {
      const answer = await runOn(store, uncordonMachine, { params: { machine } });
      return { answer, text: `${machine} ${answer.outcome === "unchanged" ? "was not cordoned" : "gets jobs again"}` };
    });

  machines
    .sub("remove", "remove the record of a machine that is not paired", machineArgument())
    .more(`
A machine without a record may offer every model, if its own credentials let it in. The record of a paired machine can be
removed an hour after it was revoked.

Example:
  trunkline machines remove attic`)
    .does(onStore, async (store, machine: string) => {
      await runOn(store, removeMachineRecord, { params: { machine } });
      return { answer: { machine, outcome: "removed" }, text: `${machine} has no record any more` };
    });
}

/** Adds the commands that say what a machine may do. */
export function addRights(machines: CliCommand): void {
  machines
    .command("models")
    .alias("set")
    .description("set which models a machine may offer")
    .addArgument(machineArgument())
    .addOption(modelsOption().makeOptionMandatory())
    .more(`${patternsHelp} The machine need not be there yet. Models that its record does not permit are not listed, and
no request for them goes there.

Examples:
  trunkline machines models attic --models 'llama*,qwen*'
  trunkline machines models attic --models '*'`)
    .does(onStore, async (store, machine: string, { models }: { readonly models: readonly string[] }) => {
      const answer = await runOn(store, setMachineRecord, {
        params: { machine },
        body: { models },
      });
      const may = answer.outcome === "unchanged" ? "might before, and may" : "may";
      return { answer, text: `${machine} ${may} offer ${modelsText({ models })}` };
    });

  machines
    .sub("labels", "set the labels by which routes name a machine", machineArgument())
    .requiredOption(
      "--labels <labels>",
      "its labels, with commas between, or none",
      readByUnless([none], commaList.pipe(machineLabels)),
    )
    .more(`
A route's target may ask for a label ("trunkline routes set"). The labels take the place of those that the machine had.

Examples:
  trunkline machines labels attic --labels fast,mac
  trunkline machines labels attic --labels none`)
    .does(onStore, async (store, machine: string, given: { readonly labels: OrNone<readonly string[]> }) => {
      const body = { labels: given.labels === none ? [] : given.labels };
      const answer = await runOn(store, labelMachine, { params: { machine }, body });
      return {
        answer,
        text: `${machine} has ${answer.labels ? `the labels ${answer.labels.join(", ")}` : "no labels"}`,
      };
    });

  machines
    .sub("external", "say that a machine's models run elsewhere, such as at a cloud", machineArgument())
    .option("--off", "they do not: the machine gets requests as any other does")
    .more(`
An agent whose model server is somebody else's sends them every prompt that it gets. A machine with this mark gets a
request only if a route says so ("trunkline routes set") and the key was issued with --external. Mark the machine before
it connects: "trunkline machines pair --external".

Examples:
  trunkline machines external cloud
  trunkline machines external cloud --off`)
    .does(onStore, async (store, machine: string, { off }: { readonly off?: true }) => {
      const body = { external: off === undefined };
      const answer = await runOn(store, markMachine, { params: { machine }, body });
      const said = off
        ? "is not external: any request may go there"
        : "is external: only routes that say so lead there";
      return { answer, text: `${machine} ${said}` };
    });
}
