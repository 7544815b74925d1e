import { join } from "node:path";
import type { CodingClient } from "./coding-clients.ts";
import type { ScriptedStep } from "./scripted-model.ts";

/** The task that every client is given, and the words that it ends with. */
export const task = "Mend the spelling in greeting.txt, then count its words.";
export const closing = "The spelling is mended, and the greeting has two words.";

export const greeting = { before: "Hello, wrold!\n", after: "Hello, world!\n" };
export const count = "2 greeting.txt\n";
const command = "wc -w greeting.txt > words.txt && cat words.txt";

/** Texts that are ours wherever they occur in a client's traffic, beside those of the script. */
export const ownTexts = [task, greeting.before.trim(), greeting.after.trim(), count.trim()];

/** Answers of the model to a client that does the task in a folder. */
export function spellingScript({ tools }: CodingClient, project: string): readonly ScriptedStep[] {
  const file = join(project, "greeting.txt");
  return [tools.read(file), tools.edit(file, "wrold", "world"), tools.run(command), { says: closing }];
}
