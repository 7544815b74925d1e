import type { Command } from "commander";
import { runOn } from "#shared/admin/run-on.ts";
import { machineOperations } from "#shared/admin/machine-operations.ts";
import type { ShownMachineRecord } from "#shared/records/shown-machine.ts";
import { type CliCommand, commandIn, type JsonOption, type CliContext, widthOf } from "../terminal/command-line.ts";
import { addChanges, machineArgument, modelsText } from "./machines-change.ts";
import { addDrain } from "./machines-drain.ts";
import { addPair, type PairContext } from "./machines-pair.ts";
import { fromNow, utcTime } from "../terminal/quantity-text.ts";
import { alignedTable, cutText, fieldLines } from "../terminal/table-text.ts";
import { unreadLine, whichStoreHelp, withKeyStore } from "../site/with-key-store.ts";

const { listMachineRecords, showMachineRecord } = machineOperations;

export function machinesCommand(context: PairContext): Command {
  const machines = commandIn("machines", context).more(`
All gateways follow a change within a second. "trunkline status" shows which machines are there.

Examples:
  trunkline machines pair attic --models 'llama*,qwen*'
  trunkline machines list
  trunkline machines drain attic
  trunkline machines revoke attic
${whichStoreHelp}`);
  addList(machines, context);
  addShow(machines, context);
  addPair(machines, context);
  addChanges(machines, context);
  addDrain(machines, context);
  return machines;
}

function addList(machines: CliCommand, context: CliContext): void {
  const { stdout, stderr } = context;
  machines
    .command("list", { isDefault: true })
    .description("show every machine that has a record")
    .json()
    .more(`
A machine is "joining" until it has used its join line. A machine that is "unpaired" has its name from its own settings
(TRUNKLINE_MACHINE); its record says which models it may offer. "seen" is noted every few minutes.

Examples:
  trunkline machines list
  trunkline machines list --json`)
    .action(({ json }: JsonOption) =>
      withKeyStore(context, { json }, async (store) => {
        const nowMs = store.clock.wall();
        const { data: shown, unread } = await runOn(store, listMachineRecords, {});
        stderr.write(unreadLine(unread));
        if (json) stdout.write(`${JSON.stringify(shown)}\n`);
        else if (shown.length > 0) stdout.write(tableOf(shown, { nowMs, widthMax: widthOf(stdout) }));
        else stderr.write("No machine has a record yet; `trunkline machines pair <name>` makes one.\n");
      }),
    );
}

const modelsWidthMax = 80;

function tableOf(
  shown: readonly ShownMachineRecord[],
  { nowMs, widthMax }: { readonly nowMs: number; readonly widthMax: number | undefined },
): string {
  const cells = (record: ShownMachineRecord): readonly string[] => [
    record.machine,
    record.external ? `${record.state}, external` : record.state,
    cutText(modelsText(record), modelsWidthMax),
    record.last_seen_at === null ? "-" : fromNow(Date.parse(record.last_seen_at), nowMs),
    utcTime(record.changed_at),
  ];
  const headings = ["machine", "state", "models", "seen", "changed"];
  return alignedTable(headings, shown.map(cells), { wrap: ["machine", "models"], widthMax });
}

function addShow(machines: CliCommand, context: CliContext): void {
  const { stdout } = context;
  machines
    .command("show")
    .description("show all that is known of a machine's record")
    .addArgument(machineArgument())
    .json()
    .more("\nExample:\n  trunkline machines show attic")
    .action((machine: string, { json }: JsonOption) =>
      withKeyStore(context, { json }, async (store) => {
        const shown = await runOn(store, showMachineRecord, { params: { machine } });
        stdout.write(json ? `${JSON.stringify(shown)}\n` : machineFields(shown, store.clock.wall()));
      }),
    );
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
