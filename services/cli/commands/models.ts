import { z } from "zod";
import { type Ability, isAble, type Model, modelIdCharactersMax, type ShownModel } from "#shared/protocol/model.ts";
import { machineOperations } from "#shared/admin/machine-operations.ts";
import { notListed } from "#shared/fleet/fleet-words.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { machineName } from "#shared/protocol/identifiers.ts";
import type { ManageAction } from "#shared/protocol/job-bodies.ts";
import {
  type CliCommand,
  commandIn,
  type JsonOption,
  readBy,
  type CliContext,
  type Workplace,
} from "../terminal/command-line.ts";
import { interruptedCode, untilInterrupted } from "../terminal/interrupt.ts";
import { type ChatSite, listSiteModels } from "../site/chat-client.ts";
import { loginInUse } from "../site/logins.ts";
import {
  atGateway,
  givenOperations,
  type OperationsOptions,
  type OperationsPort,
  whichGatewayHelp,
} from "../site/operations-port.ts";
import { byteSize, grouped } from "../terminal/quantity-text.ts";
import { addKeep, addPlan } from "./models-keep.ts";
import { addPulls, pullingMachine } from "./models-pulls.ts";
import { showProgress } from "../terminal/show-progress.ts";
import { type TextColumn, tableOf } from "../terminal/table-text.ts";

export function modelsCommand(context: CliContext): CliCommand {
  const models = commandIn("models", context).more(`
Examples:
  trunkline models
  trunkline models --machine attic
  trunkline models pull llama3.2 --machine attic
  trunkline models rm llama3.2 --machine attic
  trunkline models keep llama3.2 --on 2
${whichGatewayHelp}`);
  addList(models);
  addManage(models);
  addKeep(models);
  addPlan(models);
  addPulls(models);
  return models;
}

interface MachineOption {
  readonly machine?: string | undefined;
}

/** A gateway's operations port, or the site of a login. */
const atGatewayOrLogin: Workplace<OperationsPort | ChatSite> = {
  ...atGateway,
  open: (context, given: OperationsOptions & MachineOption, work) => {
    const isPlain = given.operationsUrl === undefined && given.machine === undefined;
    const site = isPlain ? loginInUse(context.environment, undefined, "`trunkline login`") : undefined;
    return work(site ?? operationsOrHint(given, context));
  },
};

/** Finds the operations port. A person without an admin key learns how to list the models of their own. */
function operationsOrHint(given: OperationsOptions, context: CliContext): OperationsPort {
  try {
    return givenOperations(given, context);
  } catch (error) {
    if (!(error instanceof StartFailure) || error.exitCode !== exitCodes.config) throw error;
    const hint = "After `trunkline login <url>` it lists the models of your own key.";
    throw new StartFailure(error.exitCode, `${error.message} ${hint}`, { cause: error });
  }
}

function addList(models: CliCommand): void {
  models
    .command("list", { isDefault: true })
    .description("show what every machine offers at this moment; what `trunkline models` alone does too")
    .option("--machine <name>", "only of this machine", readBy(machineName))
    .more(`
The window is in tokens. "loaded" says whether a model lies in memory now, or how far its load is, and "-" that its
runtime does not tell. "memory" is what it takes there, once that was measured. "goes on" names the answers that it goes
on with after another machine, as its machine has proved: "yes" for all; "no digest" where nobody knows which models of
other machines are the same (docs/settings.md); "not yet" until its machine is idle and the model in memory.
Machines that could not be asked are named on standard error. After "trunkline login" it lists the models of that key.

Examples:
  trunkline models
  trunkline models --machine attic
  trunkline models --json`)
    .does(atGatewayOrLogin, async (port, { machine: named }: MachineOption) => {
      if ("baseUrl" in port) {
        const own = await listSiteModels(port);
        return { answer: { models: own }, text: (widthMax) => tableOf(columnsOfLogin, own, { widthMax }) };
      }
      const { data, machines } = await listModels(port, named);
      const lines = machines.flatMap(({ machine, state }) =>
        state === "listed" ? [] : [`Not listed: ${machine}, which ${notListed[state]}.\n`],
      );
      const isListed = machines.length > lines.length;
      const none = isListed
        ? "There is no model yet; `trunkline models pull <name>` gets one.\n"
        : machines.length === 0
          ? "No machine is there."
          : "";
      return {
        answer: { models: data, machines },
        text: (widthMax) => modelsTable(data, widthMax),
        remark: (data.length === 0 ? none : "") + lines.join(""),
      };
    });
}

function listModels(port: OperationsPort, machine?: string) {
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

const columnsOfLogin: readonly TextColumn<Model>[] = [
  ["id", ({ id }) => id, "wrap"],
  ["capabilities", abilitiesText, "wrap"],
  ["window", (model) => grouped.format(model.context_window), "right"],
];

const columns: readonly TextColumn<ShownModel>[] = [
  ["id", ({ id }) => id, "wrap"],
  ["machine", ({ machine }) => machine, "wrap"],
  ["runtime", ({ runtime }) => runtime ?? "-"],
  ["capabilities", abilitiesText, "wrap"],
  ["window", (model) => grouped.format(model.context_window), "right"],
  ["size", (model) => sizeOf(model.size_mb), "right"],
  ["memory", (model) => sizeOf(model.memory_mb), "right"],
  ["MLX", (model) => yesOrNo(model.apple_mlx)],
  ["loaded", loadedText],
  ["goes on", goesOnText, "wrap"],
];

export function modelsTable(models: readonly ShownModel[], widthMax?: number): string {
  const isMeasured = models.some(({ memory_mb: memoryMb }) => typeof memoryMb === "number");
  const isKnown = models.some(({ digest }) => digest);
  const shown = columns.filter(([name]) => (isMeasured || name !== "memory") && (isKnown || name !== "goes on"));
  return tableOf(shown, models, { widthMax });
}

function abilitiesText(model: Pick<Model, "capabilities" | "x_capabilities">): string {
  return words.flatMap(([ability, word]) => (isAble(model, ability) ? [word] : [])).join(", ") || "-";
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
  readonly description: string;
  readonly done: string;
  readonly more: string;
}

/** The commands that manage a model on a machine, by their names. */
const managing: Readonly<Record<string, ManageCommand>> = {
  pull: {
    action: "pull",
    description: "have a machine fetch a model, and watch it come",
    done: "Pulled",
    more: `The name is the one that the machine's runtime knows the model by. Without --machine, the machine with most memory is
chosen among those that may pull. Ctrl-C leaves the pull, which goes on; "trunkline models pulls" shows it.`,
  },
  rm: {
    action: "remove",
    description: "delete a model from a machine",
    done: "Removed",
    more: "The model is gone from the disk of that machine, and stays on others.",
  },
  load: {
    action: "load",
    description: "have a machine take a model into memory",
    done: "Loaded",
    more: "The first request to the model then waits no longer than the next.",
  },
  unload: {
    action: "unload",
    description: "have a machine take a model out of memory",
    done: "Unloaded",
    more: "The next request to the model loads it again.",
  },
};

const modelName = z
  .string()
  .min(1, "must not be empty")
  .max(modelIdCharactersMax, `must have at most ${modelIdCharactersMax} characters`);

function addManage(models: CliCommand): void {
  for (const [word, { action, description, done, more }] of Object.entries(managing)) {
    const which =
      action === "pull"
        ? "the machine; left out, the roomiest that may pull"
        : "the machine; may be left out where there is only one";
    models
      .command(word)
      .description(description)
      .argument("<model>", "the model", readBy(modelName))
      .option("--machine <name>", which, readBy(machineName))
      .more(`
${more}
It works where the owner of the machine allows it: TRUNKLINE_MANAGE on that machine names what is, such as pull,load.

Example:
  trunkline models ${word} llama3.2 --machine attic`)
      .does(atGateway, async (port, model: string, given: MachineOption & JsonOption) => {
        const progress = showProgress(model, given.json ? undefined : models.context);
        const machine = await manage(port, { action, model, machine: given.machine }, progress);
        return { answer: { action, model, machine }, text: `${done} ${model} on ${machine}.` };
      });
  }
}

interface ManagedModel extends MachineOption {
  readonly action: ManageAction;
  readonly model: string;
}

/** Manages a model, and returns the machine on which it did. */
async function manage(
  port: OperationsPort,
  { action, model, machine: named = "" }: ManagedModel,
  progress: ReturnType<typeof showProgress>,
): Promise<string> {
  using interrupted = untilInterrupted();
  let machine = named;
  try {
    if (machine === "") machine = await (action === "pull" ? pullingMachine(port, model) : onlyMachine(port));
    const work = port.work(action, { machine, model }, interrupted.signal);
    for await (const line of work) progress.tell(line);
    return machine;
  } catch (error) {
    if (!interrupted.signal.aborted) throw error;
    const left = `The pull of ${model} goes on at ${machine}: \`trunkline models pulls\` shows it, \`models pulls stop ${model}\` ends it.`;
    const told = `Interrupted: the machine was told to stop the ${action} of ${model}.`;
    throw new StartFailure(interruptedCode, action === "pull" && machine !== "" ? left : told);
  } finally {
    progress.end();
  }
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
