import type { Command } from "commander";
import type { KeyId } from "#shared/keys/key-token.ts";
import { showKey } from "#shared/keys/shown-key.ts";
import { exitCodes, StartFailure } from "#shared/process/start-failure.ts";
import { jsonOption, type GivenJson } from "../json-option.ts";
import type { Surroundings } from "../surroundings.ts";
import { withKeyStore } from "../with-key-store.ts";
import { noSuchKey } from "./changed-record.ts";
import { keyArgument } from "./given-key-id.ts";
import { keyFields } from "./key-fields.ts";

export function addShow(keys: Command, surroundings: Surroundings): void {
  const { stdout } = surroundings;
  keys
    .command("show")
    .description("show all that is known of a key, without its secret")
    .addArgument(keyArgument())
    .addOption(jsonOption())
    .addHelpText("after", "\nExample:\n  trunkline keys show 0aB1cD2eF3gH")
    .action((id: KeyId, { json }: GivenJson) =>
      withKeyStore(surroundings, { json }, async ({ keys: store, clock, place }) => {
        const found = await store.find(id);
        if (found.kind === "absent") throw noSuchKey(id, place);
        if (found.kind === "tombstone") {
          throw new StartFailure(
            exitCodes.failed,
            `The key ${id} expired so long ago that nothing else is known of it.`,
          );
        }
        const nowMs = clock.wall();
        const shown = showKey(found.record, nowMs);
        stdout.write(json ? `${JSON.stringify(shown)}\n` : keyFields(shown, { nowMs }));
      }),
    );
}
