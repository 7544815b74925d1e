import type { Command } from "commander";
import { commandIn } from "./command-in.ts";
import { addChange } from "./keys/change.ts";
import { addDisable, addEnable } from "./keys/disable.ts";
import { addExtend } from "./keys/extend.ts";
import { addIssue } from "./keys/issue.ts";
import { addList } from "./keys/list.ts";
import { addLog } from "./keys/log.ts";
import { addRevoke } from "./keys/revoke.ts";
import { addRotate } from "./keys/rotate.ts";
import { addShow } from "./keys/show.ts";
import type { Surroundings } from "./surroundings.ts";
import { whichStoreHelp } from "./with-key-store.ts";

/**
 * Makes the command `trunkline keys …`. It throws a CommanderError for wrong usage, and a StartFailure for every other
 * error.
 */
export function keysCommand(surroundings: Surroundings): Command {
  const keys = commandIn("keys", surroundings)
    .description("issue API keys, list and change them, take them back")
    .addHelpText(
      "after",
      `
Examples:
  trunkline keys issue --name alice --scopes 'llama3.2,qwen*' --rpm 60 --budget 1M/month
  trunkline keys list
  trunkline keys rotate 0aB1cD2eF3gH --grace 24h
${whichStoreHelp}`,
    );
  for (const add of [
    addIssue,
    addList,
    addShow,
    addRotate,
    addExtend,
    addChange,
    addDisable,
    addEnable,
    addRevoke,
    addLog,
  ])
    add(keys, surroundings);
  return keys;
}
