import { runOn } from "#shared/admin/run-on.ts";
import { machineOperations } from "#shared/admin/machine-operations.ts";
import type { ShownMachineRecord } from "#shared/records/shown-machine.ts";
import { type CliCommand, commandIn } from "../terminal/command-line.ts";
import { addRights, addStates, machineArgument, modelsText } from "./machines-change.ts";
import { addDrain } from "./machines-drain.ts";
import { addPair, type PairContext } from "./machines-pair.ts";
import { fromNow } from "#shared/process/quantities.ts";
import { utcTime } from "../terminal/quantity-text.ts";
import { type TextColumn, cutText, fieldLines, listed } from "../terminal/table-text.ts";
import { onStore, whichStoreHelp } from "../site/with-key-store.ts";

const { listMachineRecords, showMachineRecord } = machineOperations;

export function machinesCommand(context: PairContext): CliCommand {
  const machines = commandIn("machines", context).more(`
All gateways follow a change within a second. "trunkline status" shows which machines are there.

Examples:
  trunkline machines pair attic --models 'llama*,qwen*'
  trunkline machines list
  trunkline machines drain attic
  trunkline machines revoke attic
${whichStoreHelp}`);
  machines
    .command("list", { isDefault: true })
    .description("show every machine that has a record")
    .more(`
A machine is "joining" until it has used its join line. A machine that is "unpaired" has its name from its own settings
(TRUNKLINE_MACHINE); its record says which models it may offer. "seen" is noted every few minutes.

Examples:
  trunkline machines list
  trunkline machines list --json`)
    .does(onStore, async (store) => {
      const { data, unread } = await runOn(store, listMachineRecords, {});
      const none = "No machine has a record yet; `trunkline machines pair <name>` makes one.";
      return { answer: data, unread, ...listed(columnsAt(store.clock.wall()), data, none) };
    });
  machines
    .sub("show", "show all that is known of a machine's record", machineArgument())
    .more("\nExample:\n  trunkline machines show attic")
    .does(onStore, async (store, machine: string) => {
      const answer = await runOn(store, showMachineRecord, { params: { machine } });
      return { answer, text: machineFields(answer, store.clock.wall()) };
    });
  addPair(machines, context);
  addStates(machines);
  addRights(machines);
  addDrain(machines);
  return machines;
}

const modelsWidthMax = 80;

function columnsAt(nowMs: number): readonly TextColumn<ShownMachineRecord>[] {
  return [
    ["machine", ({ machine }) => machine, "wrap"],
    ["state", ({ state, external }) => (external ? `${state}, external` : state)],
    ["models", (record) => cutText(modelsText(record), modelsWidthMax), "wrap"],
    ["seen", ({ last_seen_at: at }) => (at === null ? "-" : fromNow(Date.parse(at), nowMs))],
    ["changed", (record) => utcTime(record.changed_at)],
  ];
}

function machineFields(shown: ShownMachineRecord, nowMs: number): string {
  const when = (time: string): string => `${utcTime(time)} (${fromNow(Date.parse(time), nowMs)})`;
  const { public_key: key, join_used_again: again, cordon } = shown;
  return fieldLines([
    ["machine", shown.machine],
    ["state", shown.state],
    ["models", modelsText(shown)],
    ["labels", shown.labels?.join(", ")],
    ["external", shown.external ? "yes: only routes that say so lead there" : null],
    ["join line", shown.join_expires_at && `not used yet, good until ${when(shown.join_expires_at)}`],
    ["public key", key],
    ["paired", shown.paired_at && `${when(shown.paired_at)} by ${shown.paired_by}, from ${shown.paired_from}`],
    ["line used again", again && `${when(again.at)} from ${again.from}: if the first was not you, revoke this machine`],
    ["seen", key === null ? null : shown.last_seen_at === null ? "never" : when(shown.last_seen_at)],
    ["cordoned", cordon && `${when(cordon.at)} by ${cordon.by}: ${cordon.reason}`],
    ["revoked", shown.revoked_at && when(shown.revoked_at)],
    ["created", utcTime(shown.created_at)],
    ["changed", utcTime(shown.changed_at)],
  ]);
}
