import { z } from "zod";
import type { Command } from "commander";
import {
  type Ability,
  isAble,
  modelIdCharactersMax,
  type ModelListing,
  type ShownModel,
} from "#shared/protocol/model.ts";
import { machineOperations } from "#shared/admin/machine-operations.ts";
import { notListed } from "#shared/fleet/fleet-words.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { machineName } from "#shared/protocol/identifiers.ts";
import type { ManageAction } from "#shared/protocol/job-bodies.ts";
import {
  type CliCommand,
  commandIn,
  type JsonOption,
  interruptedCode,
  readBy,
  type CliContext,
  untilInterrupted,
  widthOf,
} from "../terminal/command-line.ts";
import {
  asksGateway,
  givenOperations,
  type OperationsOptions,
  type OperationsPort,
  whichGatewayHelp,
} from "../site/operations-port.ts";
import { byteSize, grouped } from "../terminal/quantity-text.ts";
import { addKeep, addPlan } from "./models-keep.ts";
import { addPulls, pullingMachine } from "./models-pulls.ts";
import { showProgress } from "../terminal/show-progress.ts";
import { alignedTable } from "../terminal/table-text.ts";

export function modelsCommand(context: CliContext): Command {
  const models = commandIn("models", context).more(`
Examples:
  trunkline models
  trunkline models --machine attic
  trunkline models pull llama3.2 --machine attic
  trunkline models rm llama3.2 --machine attic
  trunkline models keep llama3.2 --on 2
${whichGatewayHelp}`);
  addList(models, context);
  addManage(models, context);
  addKeep(models, context);
  addPlan(models, context);
  addPulls(models, context);
  return models;
}

interface Options extends OperationsOptions, JsonOption {
  readonly machine?: string;
}

function addList(models: CliCommand, context: CliContext): void {
  const { stdout, stderr } = context;
  models
    .command("list", { isDefault: true })
    .description("show what every machine offers at this moment; what `trunkline models` alone does too")
    .option("--machine <name>", "only of this machine", readBy(machineName))
    .with(
      asksGateway(`
The window is in tokens. "loaded" says whether a model lies in memory now, or how far its load is, and "-" that its
runtime does not tell. "memory" is what it takes there, once that was measured. "goes on" names the answers that it goes
on with after another machine, as its machine has proved: "yes" for all; "no digest" where nobody knows which models of
other machines are the same (docs/settings.md); "not yet" until its machine is idle and the model in memory.
Machines that could not be asked are named on standard error.

Examples:
  trunkline models
  trunkline models --machine attic
  trunkline models --json
`),
    )
    .action(async ({ machine, json, ...given }: Options) => {
      const { data, machines } = await listModels(givenOperations(given, context), machine);
      if (json) {
        stdout.write(`${JSON.stringify({ models: data, machines })}\n`);
        return;
      }
      if (data.length > 0) stdout.write(modelsTable(data, widthOf(stdout)));
      else if (machines.some(({ state }) => state === "listed"))
        stderr.write("There is no model yet; `trunkline models pull <name>` gets one.\n");
      else if (machines.length === 0) stderr.write("No machine is there.\n");
      for (const { machine: name, state } of machines)
        if (state !== "listed") stderr.write(`Not listed: ${name}, which ${notListed[state]}.\n`);
    });
}

function listModels(port: OperationsPort, machine?: string): Promise<ModelListing> {
  return port.ask(machineOperations.listModels, { query: { machine } });
}

const bytesPerMb = 1_000_000;

const words: readonly (readonly [Ability, string])[] = [
  ["completion", "chat"],
  ["vision", "vision"],
  ["embedding", "embed"],
  ["rerank", "rerank"],
  ["transcription", "transcribe"],
  ["speech", "speak"],
  ["image", "image"],
  ["moderation", "moderate"],
  ["tools", "tools"],
  ["thinking", "think"],
];

export function modelsTable(models: readonly ShownModel[], widthMax?: number): string {
  const isMeasured = models.some(({ memory_mb: memoryMb }) => typeof memoryMb === "number");
  const measured = (cell: string): readonly string[] => (isMeasured ? [cell] : []);
  const isKnown = models.some(({ digest }) => digest);
  const proved = (cell: string): readonly string[] => (isKnown ? [cell] : []);
  const able = (model: ShownModel): readonly string[] =>
    words.flatMap(([ability, word]) => (isAble(model, ability) ? [word] : []));
  return alignedTable(
    [
      "id",
      "machine",
      "runtime",
      "capabilities",
      "window",
      "size",
      ...measured("memory"),
      "MLX",
      "loaded",
      ...proved("goes on"),
    ],
    models.map((model) => [
      model.id,
      model.machine,
      model.runtime ?? "-",
      able(model).join(", ") || "-",
      grouped.format(model.context_window),
      sizeOf(model.size_mb),
      ...measured(sizeOf(model.memory_mb)),
      yesOrNo(model.apple_mlx),
      loadedText(model),
      ...proved(goesOnText(model)),
    ]),
    { right: ["window", "size", "memory"], wrap: ["id", "machine", "capabilities", "goes on"], widthMax },
  );
}

function sizeOf(mb: number | null | undefined): string {
  return mb ? byteSize(mb * bytesPerMb) : "-";
}

function loadedText({ loaded, loading, kept }: ShownModel): string {
  if (loading) return `${loading.percent} %, ${loading.seconds_left} s left`;
  return kept ? `${yesOrNo(loaded)}, kept` : yesOrNo(loaded);
}

function goesOnText({ digest, continues, capabilities: { completion, tools, thinking } }: ShownModel): string {
  if (!completion) return "-";
  if (!digest) return "no digest";
  if (!continues) return "not yet";
  const all = (thinking ? 2 : 1) * (tools ? 2 : 1);
  return continues.length === all ? "yes" : continues.join(", ") || "no";
}

function yesOrNo(answer: boolean | null): string {
  if (answer === null) return "-";
  return answer ? "yes" : "no";
}

interface ManageCommand {
  readonly action: ManageAction;
  /** The subcommand's name. */
  readonly word: string;
  readonly description: string;
  readonly done: string;
  readonly more: string;
}

const all: readonly ManageCommand[] = [
  {
    action: "pull",
    word: "pull",
    description: "have a machine fetch a model, and watch it come",
    done: "Pulled",
    more: `The name is the one that the machine's runtime knows the model by. Without --machine, the machine with most memory is
chosen among those that may pull. Ctrl-C leaves the pull, which goes on; "trunkline models pulls" shows it.`,
  },
  {
    action: "remove",
    word: "rm",
    description: "delete a model from a machine",
    done: "Removed",
    more: "The model is gone from the disk of that machine, and stays on others.",
  },
  {
    action: "load",
    word: "load",
    description: "have a machine take a model into memory",
    done: "Loaded",
    more: "The first request to the model then waits no longer than the next.",
  },
  {
    action: "unload",
    word: "unload",
    description: "have a machine take a model out of memory",
    done: "Unloaded",
    more: "The next request to the model loads it again.",
  },
];

const onlyOneHelp = "the machine; may be left out where there is only one";
const machineHelp: Readonly<Record<ManageAction, string>> = {
  pull: "the machine; left out, the roomiest that may pull",
  remove: onlyOneHelp,
  load: onlyOneHelp,
  unload: onlyOneHelp,
};

const modelName = z
  .string()
  .min(1, "must not be empty")
  .max(modelIdCharactersMax, `must have at most ${modelIdCharactersMax} characters`);

function addManage(models: CliCommand, context: CliContext): void {
  for (const managing of all) {
    models
      .command(managing.word)
      .description(managing.description)
      .argument("<model>", "the model", readBy(modelName))
      .option("--machine <name>", machineHelp[managing.action], readBy(machineName))
      .with(
        asksGateway(`
${managing.more}
It works where the owner of the machine allows it: TRUNKLINE_MANAGE on that machine names what is, such as pull,load.

Example:
  trunkline models ${managing.word} llama3.2 --machine attic
`),
      )
      .action((name: string, given: Options) => manage(managing, { name, given }, context));
  }
}

async function manage(
  { action, done }: ManageCommand,
  { name, given }: { readonly name: string; readonly given: Options },
  context: CliContext,
): Promise<void> {
  const { stdout } = context;
  const port = givenOperations(given, context);
  const progress = showProgress(name, given.json ? undefined : context);
  using interrupted = untilInterrupted();
  let machine = given.machine ?? "";
  try {
    machine = given.machine ?? (await (action === "pull" ? pullingMachine(port, name) : onlyMachine(port)));
    const work = port.work(action, { machine, model: name }, interrupted.signal);
    for await (const line of work) progress.tell(line);
  } catch (error) {
    if (!interrupted.signal.aborted) throw error;
    const left = `The pull of ${name} goes on at ${machine}: \`trunkline models pulls\` shows it, \`models pulls stop ${name}\` ends it.`;
    const told = `Interrupted: the machine was told to stop the ${action} of ${name}.`;
    throw new StartFailure(interruptedCode, action === "pull" && machine !== "" ? left : told);
  } finally {
    progress.end();
  }
  stdout.write(`${given.json ? JSON.stringify({ action, model: name, machine }) : `${done} ${name} on ${machine}.`}\n`);
}

const namedMax = 10;

/** Returns the only machine that is online, for commands that name none. Fails when there is not exactly one. */
async function onlyMachine(port: OperationsPort): Promise<string> {
  const { machines } = await listModels(port);
  const there = machines.filter(({ state }) => state !== "offline" && state !== "stopping");
  const [first, ...others] = there.map(({ machine }) => machine);
  if (first === undefined) {
    throw new StartFailure(exitCodes.unavailable, "No machine is there: start `trunkline agent` on one.");
  }
  if (others.length === 0) return first;
  const named = [first, ...others].slice(0, namedMax).join(", ");
  throw new StartFailure(
    exitCodes.usage,
    `There is more than one machine: name one with --machine (${named}${others.length < namedMax ? "" : ", …"}).`,
  );
}
