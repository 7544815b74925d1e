import type { Command } from "commander";
import type { KeyId } from "#shared/keys/key-token.ts";
import { jsonOption, type GivenJson } from "../json-option.ts";
import type { Surroundings } from "../surroundings.ts";
import { changeAndTell } from "./change-and-tell.ts";
import { keyArgument } from "./given-key-id.ts";
import { keyFields } from "./key-fields.ts";
import {
  givenTerms,
  limitingOptions,
  limitsHelp,
  nameOption,
  scopesHelp,
  scopesOption,
  type GivenTerms,
} from "./terms.ts";

interface Given extends GivenTerms, GivenJson {
  readonly name?: string;
  readonly scopes?: readonly string[];
}

export function addChange(keys: Command, surroundings: Surroundings): void {
  const { stderr, clock } = surroundings;
  const terms = [nameOption(), scopesOption(), ...limitingOptions()];
  const change = keys
    .command("change")
    .description("change what a key is called, what it may call, and its limits")
    .addArgument(keyArgument());
  for (const option of terms) change.addOption(option);
  change
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
What is not named stays as it is; none takes a limit away, and any frees the key from its machines.
${scopesHelp}
${limitsHelp}

Examples:
  trunkline keys change 0aB1cD2eF3gH --name "alice's laptop" --rpm 120
  trunkline keys change 0aB1cD2eF3gH --machines any --budget none`,
    )
    .action(async (id: KeyId, given: Given) => {
      if (terms.every((option) => change.getOptionValueSource(option.attributeName()) === undefined)) {
        change.error(`error: say what to change: ${terms.map(({ long }) => long).join(", ")}.`);
      }
      const { name, scopes, json } = given;
      const wanted = { name, scopes, ...givenTerms(given) };
      await changeAndTell(
        { id, change: { action: "changed", terms: wanted }, json },
        surroundings,
        (shown, outcome) => {
          if (outcome === "unchanged") stderr.write("Nothing was changed: the key was so before.\n");
          return keyFields(shown, { nowMs: clock.wall() });
        },
      );
    });
}
