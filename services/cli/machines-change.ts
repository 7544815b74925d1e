import { Argument, type Command, Option } from "commander";
import { fleetListing, type FleetListing } from "#shared/fleet/shown-fleet.ts";
import { replicatedIn } from "#shared/keys/change-key.ts";
import {
  changeMachine,
  defaultCordonReason,
  directUntil,
  type MachineChange,
  type MachineChanged,
  machineNameUsed,
  removeMachine,
} from "#shared/machines/change-machine.ts";
import { cordonReason, type MachineRecord } from "#shared/machines/machine-record.ts";
import { showMachineRecord } from "#shared/machines/shown-machine.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { machineName } from "#shared/protocol/identifiers.ts";
import { type GivenJson, jsonOption, none, type OrNone, readBy, type Surroundings } from "./command-line.ts";
import { labelsOption, machineArgument, modelsOption, modelsText, patternsHelp } from "./machine-options.ts";
import { utcTime } from "./quantity-text.ts";
import { givenOperations } from "./operations-options.ts";
import { actor, replicationLine, withKeyStore } from "./with-key-store.ts";

interface Changing {
  readonly name: string;
  readonly change: MachineChange;
  readonly json?: true | undefined;
}

/** Changes the record of a machine and says so: in words, or as the whole record with its outcome. */
async function changeAndTell(
  { name, change, json }: Changing,
  surroundings: Surroundings,
  say: (outcome: MachineChanged["outcome"], changed: MachineChanged) => string,
): Promise<void> {
  const { stdout, stderr } = surroundings;
  await withKeyStore(surroundings, { json }, async ({ machines, keys, clock }) => {
    const changed = await changeMachine(name, change, { machines, keys, clock, actor: actor() });
    const { outcome, record } = changed;
    const shown = showMachineRecord(record, { nowMs: clock.wall(), lastSeen: await machines.lastSeen() });
    const text = json ? JSON.stringify({ ...shown, outcome, ...replicatedIn(changed) }) : say(outcome, changed);
    stdout.write(`${text}\n`);
    stderr.write(replicationLine(changed));
  });
}

export function addModels(machines: Command, surroundings: Surroundings): void {
  machines
    .command("models")
    .alias("set")
    .description("set which models a machine may offer")
    .addArgument(machineArgument())
    .addOption(modelsOption().makeOptionMandatory())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `${patternsHelp} The machine need not be there yet. Models that its record does not permit are not listed, and
no request for them goes there.

Examples:
  trunkline machines models attic --models 'llama*,qwen*'
  trunkline machines models attic --models '*'`,
    )
    .action((name: string, { models, json }: { readonly models: readonly string[] } & GivenJson) =>
      changeAndTell({ name, change: { action: "machine_set", models }, json }, surroundings, (outcome) => {
        const may = outcome === "changed" ? "may" : "might before, and may";
        return `${name} ${may} offer ${modelsText({ models })}`;
      }),
    );
}

export function addLabels(machines: Command, surroundings: Surroundings): void {
  machines
    .command("labels")
    .description("set the labels by which routes name a machine")
    .addArgument(machineArgument())
    .addOption(labelsOption().makeOptionMandatory())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
A route's target may ask for a label ("trunkline routes set"). The labels take the place of those that the machine had.

Examples:
  trunkline machines labels attic --labels fast,mac
  trunkline machines labels attic --labels none`,
    )
    .action((name: string, { labels, json }: { readonly labels: OrNone<readonly string[]> } & GivenJson) => {
      const change = { action: "machine_labelled", labels: labels === none ? [] : labels } as const;
      return changeAndTell({ name, change, json }, surroundings, (_, { record }) =>
        record.labels === undefined ? `${name} has no labels` : `${name} has the labels ${record.labels.join(", ")}`,
      );
    });
}

export function addElsewhere(machines: Command, surroundings: Surroundings): void {
  machines
    .command("elsewhere")
    .description("say that a machine's models run elsewhere, such as at a cloud")
    .addArgument(machineArgument())
    .addOption(new Option("--off", "they do not: the machine gets requests as any other does"))
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
An agent whose model server is somebody else's sends them every prompt that it gets. A machine with this mark gets a
request only if a route says so ("trunkline routes set") and the key was issued with --elsewhere. Mark the machine before
it connects: "trunkline machines pair --elsewhere".

Examples:
  trunkline machines elsewhere cloud
  trunkline machines elsewhere cloud --off`,
    )
    .action((name: string, { off, json }: { readonly off?: true } & GivenJson) => {
      const change = { action: "machine_elsewhere", elsewhere: off === undefined } as const;
      return changeAndTell({ name, change, json }, surroundings, () =>
        off
          ? `${name} is not elsewhere: any request may go there`
          : `${name} is elsewhere: only routes that say so lead there`,
      );
    });
}

export function addRename(machines: Command, surroundings: Surroundings): void {
  machines
    .command("rename")
    .description("give a paired machine another name")
    .addArgument(machineArgument())
    .addArgument(new Argument("<new-name>", "its new name").argParser(readBy(machineName)))
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
The machine keeps its key and learns its new name by itself. Its jobs under the old name end: drain it first to let them
finish. The old name is free at once.

Example:
  trunkline machines rename attic loft`,
    )
    .action(async (name: string, newName: string, { json }: GivenJson) => {
      await insistOnFreeName(newName, surroundings);
      const change = { action: "machine_renamed", name: newName } as const;
      await changeAndTell({ name, change, json }, surroundings, (outcome) =>
        outcome === "changed" ? `${name} is called ${newName} now` : `${name} is called so already`,
      );
    });
}

/**
 * Refuses the name of an agent that is there and was not paired, as far as a gateway of the site can be asked. The
 * gateway at which a machine joins looks again.
 */
export async function insistOnFreeName(name: string, surroundings: Surroundings): Promise<void> {
  const fleet = await askFleet(surroundings);
  const isUsed = fleet.some(
    ({ machine, status, pairing }) =>
      machine === name && status !== "offline" && (pairing === null || pairing === "unpaired"),
  );
  if (isUsed) throw new StartFailure(exitCodes.failed, machineNameUsed(name).message);
}

async function askFleet(surroundings: Surroundings): Promise<FleetListing["data"]> {
  try {
    return (await givenOperations({}, surroundings).get("/fleet", fleetListing)).data;
  } catch (error) {
    if (error instanceof StartFailure) return [];
    throw error;
  }
}

export function addRevoke(machines: Command, surroundings: Surroundings): void {
  machines
    .command("revoke")
    .description("take a machine's key back for good")
    .addArgument(machineArgument())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Its connection and its jobs end within a second at all gateways, and its key never works again. A join line that was not
used is withdrawn. "trunkline machines pair" makes a new line for the same name.

Example:
  trunkline machines revoke attic`,
    )
    .action((name: string, { json }: GivenJson) =>
      changeAndTell({ name, change: { action: "machine_revoked" }, json }, surroundings, (outcome, { record }) => {
        const said =
          outcome === "changed" ? `${name} is revoked: its key never works again` : `${name} was revoked before`;
        return said + directText(record);
      }),
    );
}

/** Says when a revoked machine's direct connection to NATS ends. Empty if it has none. */
function directText(record: MachineRecord): string {
  const until = directUntil(record);
  if (until === 0) return "";
  return `\nGateways ignore it from now on. Its direct connection to NATS ends at once where a gateway has\nTRUNKLINE_NATS_OPERATOR_KEY, and at ${utcTime(until)} at the latest. Its name can be paired anew then.`;
}

export function addCordon(machines: Command, surroundings: Surroundings): void {
  machines
    .command("cordon")
    .description("give a machine no new jobs; those that run finish")
    .addArgument(machineArgument())
    .addOption(
      new Option("--reason <text>", "why, as status shows it")
        .argParser(readBy(cordonReason))
        .default(defaultCordonReason),
    )
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
It stays connected and cordoned until "uncordon", also after a restart of everything. "drain" waits for its jobs too.

Examples:
  trunkline machines cordon attic
  trunkline machines cordon attic --reason 'new fans on Friday'`,
    )
    .action((name: string, { reason, json }: { readonly reason: string } & GivenJson) =>
      changeAndTell(
        { name, change: { action: "machine_cordoned", reason }, json },
        surroundings,
        (outcome, { record }) => {
          const isNew = outcome === "changed" && record.version === 1;
          const beware = isNew ? " (it had no record before: is that its name?)" : "";
          return outcome === "changed" ? `${name} gets no new jobs${beware}` : `${name} was cordoned before`;
        },
      ),
    );
}

export function addUncordon(machines: Command, surroundings: Surroundings): void {
  machines
    .command("uncordon")
    .description("give a machine jobs again")
    .addArgument(machineArgument())
    .addOption(jsonOption())
    .addHelpText("after", "\nExample:\n  trunkline machines uncordon attic")
    .action((name: string, { json }: GivenJson) =>
      changeAndTell({ name, change: { action: "machine_uncordoned" }, json }, surroundings, (outcome) =>
        outcome === "changed" ? `${name} gets jobs again` : `${name} was not cordoned`,
      ),
    );
}

export function addRemove(machines: Command, surroundings: Surroundings): void {
  const { stdout } = surroundings;
  machines
    .command("remove")
    .description("remove the record of a machine that is not paired")
    .addArgument(machineArgument())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
A machine without a record may offer every model, if its own credentials let it in. The record of a paired machine can be
removed an hour after it was revoked.

Example:
  trunkline machines remove attic`,
    )
    .action((name: string, { json }: GivenJson) =>
      withKeyStore(surroundings, { json }, async ({ machines: store, clock }) => {
        await removeMachine(name, { machines: store, clock, actor: actor() });
        const said = `${name} has no record any more`;
        stdout.write(`${json ? JSON.stringify({ machine: name, outcome: "removed" }) : said}\n`);
      }),
    );
}
