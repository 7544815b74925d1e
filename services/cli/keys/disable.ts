import type { Command } from "commander";
import type { KeyId } from "#shared/keys/key-token.ts";
import { jsonOption, type GivenJson } from "../json-option.ts";
import type { Surroundings } from "../surroundings.ts";
import { changeAndTell } from "./change-and-tell.ts";
import { keyArgument } from "./given-key-id.ts";

export function addDisable(keys: Command, surroundings: Surroundings): void {
  keys
    .command("disable")
    .description("refuse a key until it is enabled again")
    .addArgument(keyArgument())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Requests of the key that are under way end. To take a key back for good, revoke it.

Example:
  trunkline keys disable 0aB1cD2eF3gH`,
    )
    .action((id: KeyId, { json }: GivenJson) =>
      changeAndTell({ id, change: { action: "disabled" }, json }, surroundings, ({ name }, outcome) =>
        outcome === "changed" ? `${id} (${name}) is disabled\n` : `${id} (${name}) was disabled before\n`,
      ),
    );
}

export function addEnable(keys: Command, surroundings: Surroundings): void {
  keys
    .command("enable")
    .description("accept a key again that was disabled")
    .addArgument(keyArgument())
    .addOption(jsonOption())
    .addHelpText("after", "\nExample:\n  trunkline keys enable 0aB1cD2eF3gH")
    .action((id: KeyId, { json }: GivenJson) =>
      changeAndTell({ id, change: { action: "enabled" }, json }, surroundings, ({ name, state }, outcome) => {
        const butExpired = state === "expired" ? ", but has expired: `trunkline keys extend` makes it valid" : "";
        return `${id} (${name}) ${outcome === "changed" ? "is enabled" : "was not disabled"}${butExpired}\n`;
      }),
    );
}
