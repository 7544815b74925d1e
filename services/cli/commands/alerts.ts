import { text } from "node:stream/consumers";
import { Argument, type Command, Option } from "commander";
import { alertOperations, type OpenAlarm } from "#shared/admin/alert-operations.ts";
import { runOn } from "#shared/admin/run-on.ts";
import { alarmKinds } from "#shared/alerts/alarm.ts";
import { type AlertFormat, alertFormats } from "#shared/alerts/alert-formats.ts";
import { commaList } from "#shared/process/config.ts";
import { alertName } from "#shared/protocol/identifiers.ts";
import { givenAlert, type ShownAlert } from "#shared/records/alert-record.ts";
import { type CliContext, commandIn, readBy } from "../terminal/command-line.ts";
import { utcTime } from "../terminal/quantity-text.ts";
import { listed, type TextColumn } from "../terminal/table-text.ts";
import { atGateway } from "../site/operations-port.ts";
import { onStore, whichStoreHelp } from "../site/with-key-store.ts";

const { addAlert, listAlarms, listAlerts, removeAlert, testAlert } = alertOperations;

interface AddOptions {
  readonly name?: string;
  readonly to: string;
  readonly on: (typeof alarmKinds)[number][];
  readonly after?: string;
  readonly format: AlertFormat;
}

export function alertsCommand(context: CliContext): Command {
  const alerts = commandIn("alerts", context).more(`
One gateway calls a target when something is wrong, and again when that is over. docs/signals.md has the kinds and formats.

Examples:
  trunkline alerts add --to https://hooks.example.org/T0/B0/x --on machine-away,budget --format slack
  trunkline alerts test hooks-example-org
  trunkline alerts open
  trunkline alerts list --json
  trunkline alerts remove hooks-example-org
${whichStoreHelp}`);
  alerts
    .sub("add", "add a target that is called when something is wrong")
    .requiredOption("--to <url>", "the URL to call, which is stored encrypted; - reads it from standard input")
    .requiredOption("--on <kinds>", `what to tell it, with commas between: ${alarmKinds.join(", ")}`, readBy(kinds))
    .option("--after <duration>", "how long it must last before it is told, such as 2m")
    .addOption(new Option("--format <format>", "how to call it").choices(alertFormats).default("standard"))
    .option("--name <name>", "the name of the target (default: that of its host)", readBy(alertName))
    .more(`
Standard calls are signed as Standard Webhooks are; their secret is printed this once. A URL must be public and begin with
https://, unless TRUNKLINE_ALERT_HOSTS of the gateways names its host.

Examples:
  trunkline alerts add --to https://hooks.example.org/trunkline --on machine-away,errors --after 5m --name ops
  trunkline alerts add --to - --on gateway-away --format discord < url.txt`)
    .does(onStore, async (store, { to: given, name, on, after, format }: AddOptions) => {
      const to = given === "-" ? (await text(context.stdin ?? process.stdin)).trim() : given;
      const answer = await runOn(store, addAlert, { body: { name, to, on, after, format } });
      const { alert, host, secret } = answer;
      const shown = secret === null ? "" : `\nIts signing secret, shown this once: ${secret}`;
      const told = `${alert} (${host}) is told of ${answer.on.join(", ")}${shown}`;
      return { answer, text: told, remark: `Try it: trunkline alerts test ${alert}` };
    });
  alerts
    .command("list", { isDefault: true })
    .description("show every target; of each URL the host alone")
    .does(onStore, async (store) => {
      const { data, unread } = await runOn(store, listAlerts, {});
      const none = "There is no target yet; `trunkline alerts add` adds one.";
      return { answer: data, unread, ...listed(columns, data, none) };
    });
  alerts
    .sub("open", "show what is wrong now, and which targets were told of it")
    .more("\nOnly what a target is to be told of is looked for.")
    .does(onStore, async (store) => {
      const { data } = await runOn(store, listAlarms, {});
      const none = "Nothing is wrong that a target is to be told of.";
      return { answer: data, ...listed(alarmColumns, data, none) };
    });
  alerts
    .sub("test", "call a target now, from the network of a gateway", alertArgument())
    .does(atGateway, async (port, alert: string) => {
      const answer = await port.ask(testAlert, { params: { alert } });
      return { answer, text: `${alert} took the call with the status ${answer.status}` };
    });
  alerts.sub("remove", "remove a target", alertArgument()).does(onStore, async (store, alert: string) => {
    const answer = await runOn(store, removeAlert, { params: { alert } });
    return { answer, text: `${alert} is no alert target any more` };
  });
  return alerts;
}

const kinds = commaList.pipe(givenAlert.on);

function alertArgument(): Argument {
  return new Argument("<name>", "the name of the target").argParser(readBy(alertName));
}

const columns: readonly TextColumn<ShownAlert>[] = [
  ["name", ({ alert }) => alert],
  ["host", ({ host }) => host, "wrap"],
  ["on", ({ on }) => on.join(", "), "wrap"],
  ["after", ({ after }) => after ?? "-"],
  ["format", ({ format }) => format],
  ["added", ({ created_at: at }) => utcTime(at)],
];

const alarmColumns: readonly TextColumn<OpenAlarm>[] = [
  ["since", ({ began_at: at }) => utcTime(at)],
  ["kind", ({ kind }) => kind],
  ["what is wrong", ({ text: told }) => told, "wrap"],
  ["told", ({ told }) => told.map(({ alert, outcome }) => `${alert} (${outcome})`).join(", ") || "-", "wrap"],
];
