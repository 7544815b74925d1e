import { Option } from "commander";
import { commaList } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { keptWords } from "#shared/fleet/fleet-words.ts";
import type { ShownPlan } from "#shared/fleet/shown-plan.ts";
import { machineName } from "#shared/protocol/identifiers.ts";
import { runOn } from "#shared/admin/run-on.ts";
import { keepOperations } from "#shared/admin/keep-operations.ts";
import { copiesMax, keepText, keptModel } from "#shared/records/keep-record.ts";
import { boundMachines } from "#shared/records/key-record.ts";
import { atGateway } from "../site/operations-port.ts";
import { onStore, whichStoreHelp } from "../site/with-key-store.ts";
import { type CliCommand, readBy } from "../terminal/command-line.ts";
import { countWithin } from "../terminal/quantity-text.ts";
import { type TextColumn, listed } from "../terminal/table-text.ts";

const { removeKeep, setKeep, showPlan } = keepOperations;

interface KeepOptions {
  readonly on?: number;
  readonly machines?: readonly string[];
  readonly none?: true;
}

export function addKeep(models: CliCommand): void {
  models
    .sub("keep", "keep a model in the memory of some machines, whatever else is asked for")
    .argument("<model>", "the model, as `trunkline models` lists it", readBy(keptModel))
    .option("--on <count>", "on how many machines", readBy(countWithin({ min: 1, max: copiesMax })))
    .option(
      "--machines <names>",
      "the only machines that may, with commas between",
      readBy(commaList.pipe(boundMachines)),
    )
    .addOption(new Option("--none", "keep it no longer").conflicts(["on", "machines"]))
    .more(`
Only machines with "place" in TRUNKLINE_MANAGE keep models. Where the model is not installed it is pulled, if "pull" is
there too. A kept model makes no room for others. It comes back after a crash, and on another machine if its own one is
lost. Somebody who unloads it by hand suspends that for 10 minutes. "trunkline models plan" shows how far it is.

Examples:
  trunkline models keep qwen3:8b --on 2
  trunkline models keep qwen3:8b --on 1 --machines attic,cellar
  trunkline models keep qwen3:8b --none
${whichStoreHelp}`)
    .does(onStore, async (store, model: string, { on, machines, none }: KeepOptions) => {
      if (none) {
        await runOn(store, removeKeep, { params: { model } });
        return { answer: { model, outcome: "removed" }, text: `${model} is kept no longer` };
      }
      if (on === undefined && machines === undefined) {
        const message = "Say how many machines are to keep it with --on <count>, or --none.";
        throw new StartFailure(exitCodes.usage, message);
      }
      const body = { copies: on ?? machines?.length ?? 1, machines };
      const answer = await runOn(store, setKeep, { params: { model }, body });
      const said = answer.outcome === "unchanged" ? "was kept before" : "is kept";
      return {
        answer,
        text: `${model} ${said}: ${keepText(answer)}. \`trunkline models plan\` shows how far that is.`,
      };
    });
  models
    .sub("pin", "keep a model in the memory of this machine too")
    .argument("<model>", "the model, as `trunkline models` lists it", readBy(keptModel))
    .requiredOption("--machine <name>", "the machine", readBy(machineName))
    .more(`
The machine is added to those that keep the model. "trunkline models keep <model> --none" ends it for all of them.

Example:
  trunkline models pin qwen3:8b --machine attic
${whichStoreHelp}`)
    .does(onStore, async (store, model: string, { machine }: { readonly machine: string }) => {
      const before = await store.keeps.find(model);
      if (before !== undefined && before.machines === undefined) {
        const message = `${model} is kept on any machines (${keepText(before)}). Name them all with keep --machines.`;
        throw new StartFailure(exitCodes.failed, message);
      }
      const machines = [...new Set([...(before?.machines ?? []), machine])];
      const answer = await runOn(store, setKeep, { params: { model }, body: { copies: machines.length, machines } });
      return { answer, text: `${model} is kept: ${keepText(answer)}` };
    });
}

const planColumns: readonly TextColumn<ShownPlan["data"][number]>[] = [
  ["model", ({ model }) => model, "wrap"],
  ["machine", ({ machine }) => machine ?? "-", "wrap"],
  ["state", ({ state }) => keptWords[state][1]],
  ["why", ({ why }) => why, "wrap"],
];

export function addPlan(models: CliCommand): void {
  models
    .sub("plan", "show where kept models are or would be, and why; changes nothing")
    .more("\nExamples:\n  trunkline models plan\n  trunkline models plan --json")
    .does(atGateway, async (port) => {
      const { data, keeps } = await port.ask(showPlan, {});
      const none = "No model is kept; `trunkline models keep <model> --on 1` keeps one.";
      return { answer: { plan: data, keeps }, ...listed(planColumns, data, none) };
    });
}
