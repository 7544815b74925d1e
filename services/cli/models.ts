import type { Command } from "commander";
import { commandIn } from "./command-in.ts";
import { addList } from "./models/list.ts";
import { addManage } from "./models/manage.ts";
import { whichGatewayHelp } from "./models/operations-options.ts";
import type { Surroundings } from "./surroundings.ts";

/** Makes the command `trunkline models …`. It reports errors as `trunkline keys` does. */
export function modelsCommand(surroundings: Surroundings): Command {
  const models = commandIn("models", surroundings)
    .description("list the models of all machines, pull, remove, load and unload them")
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
