import { Argument, Option } from "commander";
import { machineLabels, modelPatterns } from "#shared/machines/machine-record.ts";
import { machineName } from "#shared/protocol/identifiers.ts";
import { commaList, none, readBy, readByUnless } from "./command-line.ts";

export function machineArgument(): Argument {
  return new Argument("<name>", "the name of the machine").argParser(readBy(machineName));
}

/** Makes the option that names the models of a machine. */
export function modelsOption(): Option {
  const what = "the models it may offer, with commas between";
  return new Option("--models <patterns>", what).argParser(readBy(commaList.pipe(modelPatterns)));
}

/** Makes the option that names the labels of a machine. */
export function labelsOption(): Option {
  const read = readByUnless([none], commaList.pipe(machineLabels));
  return new Option("--labels <labels>", "its labels, with commas between, or none").argParser(read);
}

/** Makes the option of a machine whose models run elsewhere. */
export function elsewhereOption(): Option {
  return new Option("--elsewhere", "its models run elsewhere: only routes that say so lead there");
}

export const patternsHelp = `
A pattern is a model id (llama3.2:3b), a name with all its variants (llama3.2), or one in which * stands for anything
(qwen*). Quote patterns, or the shell takes the * for itself.`;

/** Formats the models that a machine may offer. */
export function modelsText({ models }: { readonly models: readonly string[] | null }): string {
  return models?.join(", ") ?? "any";
}
