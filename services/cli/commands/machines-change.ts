import { Argument, Option } from "commander";
import { commaList } from "#shared/process/config.ts";
import { fleetListing, type FleetListing } from "#shared/fleet/shown-fleet.ts";
import {
  changeMachine,
  defaultCordonReason,
  type MachineChange,
  machineNameUsed,
  removeMachine,
} from "#shared/records/change-machine.ts";
import { cordonReason, machineLabels, type MachineRecord, modelPatterns } from "#shared/records/machine-record.ts";
import { showMachineRecord } from "#shared/records/shown-machine.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
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
import { givenOperations } from "../site/operations-port.ts";
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

/** Changes the record of a machine and says so: in words, or as the whole record with its outcome. */
async function changeAndTell(
  name: string,
  change: MachineChange,
  { given, context }: { readonly given: JsonOption; readonly context: CliContext },
  say: (isChanged: boolean, record: MachineRecord) => string,
): Promise<void> {
  await tellChange(context, given, async (store) => {
    const changed = await changeMachine(name, change, store);
    const { outcome, record } = changed;
    const shown = showMachineRecord(record, { nowMs: store.clock.wall(), lastSeen: await store.machines.lastSeen() });
    return { changed, shown: { ...shown, outcome }, say: () => say(outcome === "changed", record) };
  });
}

export function addModels(machines: CliCommand, context: CliContext): void {
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
    .action((name: string, { models, ...given }: { readonly models: readonly string[] } & JsonOption) =>
      changeAndTell(name, { action: "machine_set", models }, { given, context }, (isChanged) => {
        const may = isChanged ? "may" : "might before, and may";
        return `${name} ${may} offer ${modelsText({ models })}`;
      }),
    );
}

export function addLabels(machines: CliCommand, context: CliContext): void {
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
    .action((name: string, { labels, ...given }: { readonly labels: OrNone<readonly string[]> } & JsonOption) => {
      const change = { action: "machine_labelled", labels: labels === none ? [] : labels } as const;
      return changeAndTell(name, change, { given, context }, (_, record) =>
        record.labels === undefined ? `${name} has no labels` : `${name} has the labels ${record.labels.join(", ")}`,
      );
    });
}

export function addExternal(machines: CliCommand, context: CliContext): void {
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
    .action((name: string, { off, ...given }: { readonly off?: true } & JsonOption) => {
      const change = { action: "machine_external", external: off === undefined } as const;
      return changeAndTell(name, change, { given, context }, () =>
        off
          ? `${name} is not external: any request may go there`
          : `${name} is external: only routes that say so lead there`,
      );
    });
}

export function addRename(machines: CliCommand, context: CliContext): void {
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
    .action(async (name: string, newName: string, given: JsonOption) => {
      await assertFreeName(newName, context);
      const change = { action: "machine_renamed", name: newName } as const;
      await changeAndTell(name, change, { given, context }, (isChanged) =>
        isChanged ? `${name} is called ${newName} now` : `${name} is called so already`,
      );
    });
}

/**
 * Refuses the name of an agent that is there and was not paired, as far as a gateway of the site can be asked. The
 * gateway at which a machine joins looks again.
 */
export async function assertFreeName(name: string, context: CliContext): Promise<void> {
  let fleet: FleetListing["data"] = [];
  try {
    ({ data: fleet } = await givenOperations({}, context).get("/fleet", fleetListing));
  } catch (error) {
    if (!(error instanceof StartFailure)) throw error;
  }
  const isUsed = fleet.some(
    ({ machine, status, pairing }) =>
      machine === name && status !== "offline" && (pairing === null || pairing === "unpaired"),
  );
  if (isUsed) throw new StartFailure(exitCodes.failed, machineNameUsed(name).message);
}

export function addRevoke(machines: CliCommand, context: CliContext): void {
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
    .action((name: string, given: JsonOption) =>
      changeAndTell(name, { action: "machine_revoked" }, { given, context }, (isChanged) => {
        return isChanged ? `${name} is revoked: its key never works again` : `${name} was revoked before`;
      }),
    );
}

export function addCordon(machines: CliCommand, context: CliContext): void {
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
    .action((name: string, { reason, ...given }: { readonly reason: string } & JsonOption) =>
      changeAndTell(name, { action: "machine_cordoned", reason }, { given, context }, (isChanged, { version }) => {
        const beware = version === 1 ? " (it had no record before: is that its name?)" : "";
        return isChanged ? `${name} gets no new jobs${beware}` : `${name} was cordoned before`;
      }),
    );
}

export function addUncordon(machines: CliCommand, context: CliContext): void {
  machines
    .command("uncordon")
    .description("give a machine jobs again")
    .addArgument(machineArgument())
    .json()
    .more("\nExample:\n  trunkline machines uncordon attic")
    .action((name: string, given: JsonOption) =>
      changeAndTell(name, { action: "machine_uncordoned" }, { given, context }, (isChanged) =>
        isChanged ? `${name} gets jobs again` : `${name} was not cordoned`,
      ),
    );
}

export function addRemove(machines: CliCommand, context: CliContext): void {
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
    .action((name: string, given: JsonOption) =>
      tellChange(context, given, async (store) => {
        await removeMachine(name, store);
        const shown = { machine: name, outcome: "removed" };
        return { changed: {}, shown, say: () => `${name} has no record any more` };
      }),
    );
}
