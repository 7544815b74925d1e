import { Option, type Command } from "commander";
import { replicatedIn } from "#shared/keys/change-key.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import { revokeKey } from "#shared/keys/revoke-key.ts";
import { jsonOption, type GivenJson } from "../json-option.ts";
import type { Surroundings } from "../surroundings.ts";
import { withKeyStore } from "../with-key-store.ts";
import { actor } from "./actor.ts";
import { changedRecord, replicationLine } from "./changed-record.ts";
import { keyArgument } from "./given-key-id.ts";

export function addRevoke(keys: Command, surroundings: Surroundings): void {
  const { stdout, stderr } = surroundings;
  keys
    .command("revoke")
    .description("take a key back for good")
    .addArgument(keyArgument())
    .addOption(new Option("--with-issued", "with an admin key, revoke the model keys that it issued too"))
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Requests of the key that are under way end, and nothing makes it valid again. "trunkline keys disable" can be undone.
With an admin key, the admin and viewer keys that it issued over the admin API are revoked too, and so on; the model keys
that any of them issued are listed, and stay unless --with-issued is given.

Examples:
  trunkline keys revoke 0aB1cD2eF3gH
  trunkline keys revoke 0aB1cD2eF3gH --with-issued`,
    )
    .action((id: KeyId, { withIssued = false, json }: { readonly withIssued?: boolean } & GivenJson) =>
      withKeyStore(surroundings, { json }, async ({ keys: store, clock, place }) => {
        const means = { keys: store, clock, actor: actor() };
        const { changed, revoked, stay } = await revokeKey({ id, withIssued }, means);
        const record = changedRecord(changed, { id, place });
        stderr.write(replicationLine(changed));
        const outcome = changed.outcome === "unchanged" ? "already_revoked" : "revoked";
        if (json) {
          const ids = (records: readonly KeyRecord[]): readonly KeyId[] => records.map((each) => each.id);
          const of = { ...(revoked.length > 0 && { with: ids(revoked) }), ...(stay.length > 0 && { stay: ids(stay) }) };
          stdout.write(`${JSON.stringify({ id, outcome, ...of, ...replicatedIn(changed) })}\n`);
          return;
        }
        const called = record === undefined ? id : `${id} (${record.name})`;
        stdout.write(`${called} ${outcome === "revoked" ? "is revoked" : "was revoked before"}\n`);
        for (const each of revoked) stdout.write(`${each.id} (${each.name}), which it issued, is revoked with it\n`);
        for (const each of stay)
          stdout.write(`${each.id} (${each.name}), which it issued, stays: --with-issued revokes it\n`);
      }),
    );
}
