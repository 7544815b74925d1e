import type { Command } from "commander";
import { changeKey } from "#shared/keys/change-key.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import { jsonOption, type GivenJson } from "../json-option.ts";
import type { Surroundings } from "../surroundings.ts";
import { withKeyStore } from "../with-key-store.ts";
import { actor } from "./actor.ts";
import { changedRecord } from "./changed-record.ts";
import { keyArgument } from "./given-key-id.ts";

export function addRevoke(keys: Command, surroundings: Surroundings): void {
  const { stdout, clock } = surroundings;
  keys
    .command("revoke")
    .description("take a key back for good")
    .addArgument(keyArgument())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Requests of the key that are under way end, and nothing makes it valid again. "trunkline keys disable" can be undone.

Example:
  trunkline keys revoke 0aB1cD2eF3gH`,
    )
    .action((id: KeyId, { json }: GivenJson) =>
      withKeyStore(surroundings, { json }, async ({ keys: store, place }) => {
        const changed = await changeKey(id, { action: "revoked" }, { keys: store, clock, actor: actor() });
        const record = changedRecord(changed, { id, place });
        const outcome = changed.outcome === "unchanged" ? "already_revoked" : "revoked";
        const called = record === undefined ? id : `${id} (${record.name})`;
        const said = outcome === "revoked" ? "is revoked" : "was revoked before";
        stdout.write(json ? `${JSON.stringify({ id, outcome })}\n` : `${called} ${said}\n`);
      }),
    );
}
