import { Option, type Command } from "commander";
import { duration, formatDuration } from "#shared/keys/duration.ts";
import { defaultTtlMs } from "#shared/keys/issue-key.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import { jsonOption, type GivenJson } from "../json-option.ts";
import { readBy } from "../read-by.ts";
import type { Surroundings } from "../surroundings.ts";
import { utcTime } from "../text/utc-time.ts";
import { changeAndTell } from "./change-and-tell.ts";
import { keyArgument } from "./given-key-id.ts";

export function addExtend(keys: Command, surroundings: Surroundings): void {
  keys
    .command("extend")
    .description("make a key valid for longer")
    .addArgument(keyArgument())
    .addOption(
      new Option("--ttl <duration>", "how long it is valid from now on, such as 90d or 12h")
        .argParser(readBy(duration))
        .default(defaultTtlMs, formatDuration(defaultTtlMs)),
    )
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
A key that expired less than 90 days ago is valid again. To make a key's time shorter, disable or revoke it.

Example:
  trunkline keys extend 0aB1cD2eF3gH --ttl 365d`,
    )
    .action((id: KeyId, { ttl: ttlMs, json }: { readonly ttl: number } & GivenJson) =>
      changeAndTell({ id, change: { action: "extended", ttlMs }, json }, surroundings, (shown) => {
        const butDisabled = shown.state === "disabled" ? ", and stays disabled" : "";
        return `${id} (${shown.name}) expires ${utcTime(shown.expires_at)}${butDisabled}\n`;
      }),
    );
}
