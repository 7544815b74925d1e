import { Argument, type Command, Option } from "commander";
import { z } from "zod";
import { modelIdCharactersMax } from "#shared/model/model.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { machineName } from "#shared/protocol/identifiers.ts";
import type { ManageAction } from "#shared/protocol/job-bodies.ts";
import {
  commandIn,
  type GivenJson,
  interruptedCode,
  jsonOption,
  readBy,
  type Surroundings,
  untilInterrupted,
} from "./command-line.ts";
import { addList, listModels } from "./models-list.ts";
import { givenOperations, type GivenOperations, operationsUrlOption, whichGatewayHelp } from "./operations-options.ts";
import type { OperationsPort } from "./operations-port.ts";
import { showProgress } from "./show-progress.ts";

/** Makes the command `trunkline models …`. It reports errors as `trunkline keys` does. */
export function modelsCommand(surroundings: Surroundings): Command {
  const models = commandIn("models", surroundings)
    .description("list the models of all machines; pull, remove, load them")
    .addHelpText(
      "after",
      `
Examples:
  trunkline models
  trunkline models --machine attic
  trunkline models pull llama3.2 --machine attic
  trunkline models rm llama3.2 --machine attic
${whichGatewayHelp}`,
    );
  addList(models, surroundings);
  addManage(models, surroundings);
  return models;
}

interface Given extends GivenOperations, GivenJson {
  readonly machine?: string;
}

interface Managing {
  readonly action: ManageAction;
  /** The subcommand's name. */
  readonly word: string;
  readonly description: string;
  readonly done: string;
  readonly more: string;
}

const all: readonly Managing[] = [
  {
    action: "pull",
    word: "pull",
    description: "have a machine fetch a model, and watch it come",
    done: "Pulled",
    more: "The name is the one that the machine's runtime knows the model by. Ctrl-C stops the pull.",
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

const modelName = z
  .string()
  .min(1, "must not be empty")
  .max(modelIdCharactersMax, `must have at most ${modelIdCharactersMax} characters`);

/** Adds the commands `pull`, `rm`, `load` and `unload`. */
function addManage(models: Command, surroundings: Surroundings): void {
  for (const managing of all) {
    models
      .command(managing.word)
      .description(managing.description)
      .addArgument(new Argument("<name>", "the model").argParser(readBy(modelName)))
      .addOption(
        new Option("--machine <name>", "the machine; may be left out where there is only one").argParser(
          readBy(machineName),
        ),
      )
      .addOption(operationsUrlOption())
      .addOption(jsonOption())
      .addHelpText(
        "after",
        `
${managing.more}
It works where the owner of the machine allows it: TRUNKLINE_MANAGE on that machine names what is, such as pull,load.

Example:
  trunkline models ${managing.word} llama3.2 --machine attic
${whichGatewayHelp}`,
      )
      .action((name: string, given: Given) => manage({ managing, name, given }, surroundings));
  }
}

async function manage(
  { managing, name, given }: { readonly managing: Managing; readonly name: string; readonly given: Given },
  surroundings: Surroundings,
): Promise<void> {
  const { stdout } = surroundings;
  const { action } = managing;
  const port = givenOperations(given, surroundings);
  const progress = showProgress(name, given.json ? undefined : surroundings);
  const interrupted = untilInterrupted();
  let machine: string;
  try {
    machine = given.machine ?? (await onlyMachine(port));
    const path = `/machines/${machine}/models/${action}`;
    const work = port.work(path, { body: { model: name }, signal: interrupted.signal });
    for await (const line of work) progress.tell(line);
  } catch (error) {
    if (!interrupted.signal.aborted) throw error;
    throw new StartFailure(interruptedCode, `Interrupted: the machine was told to stop the ${action} of ${name}.`);
  } finally {
    interrupted.release();
    progress.end();
  }
  if (given.json) stdout.write(`${JSON.stringify({ action, model: name, machine })}\n`);
  else stdout.write(`${managing.done} ${name} on ${machine}.\n`);
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
