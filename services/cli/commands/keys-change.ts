import { keyOperations } from "#shared/admin/key-operations.ts";
import { runOn } from "#shared/admin/run-on.ts";
import { namesOfKeys } from "#shared/records/find-keys.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import type { CliCommand } from "../terminal/command-line.ts";
import { keyArgument } from "../terminal/key-options.ts";
import { onStore } from "../site/with-key-store.ts";

const { disableKey, enableKey, revokeKey } = keyOperations;

/** Adds the commands that say whether a key is accepted. */
export function addStates(keys: CliCommand): void {
  keys
    .sub("disable", "refuse a key until it is enabled again", keyArgument())
    .more(`
Requests of the key that are under way end. To take a key back for good, revoke it.

Example:
  trunkline keys disable 0aB1cD2eF3gH`)
    .does(onStore, async (store, id: KeyId) => {
      const answer = await runOn(store, disableKey, { params: { id } });
      const said = answer.outcome === "unchanged" ? "was disabled before" : "is disabled";
      return { answer, text: `${id} (${answer.name}) ${said}` };
    });

  keys
    .sub("enable", "accept a key again that was disabled", keyArgument())
    .more("\nExample:\n  trunkline keys enable 0aB1cD2eF3gH")
    .does(onStore, async (store, id: KeyId) => {
      const answer = await runOn(store, enableKey, { params: { id } });
      const said = answer.outcome === "unchanged" ? "was not disabled" : "is enabled";
      const butExpired = answer.state === "expired" ? ", but has expired: `trunkline keys extend` makes it valid" : "";
      return { answer, text: `${id} (${answer.name}) ${said}${butExpired}` };
    });

  addRevoke(keys);
}

function addRevoke(keys: CliCommand): void {
  keys
    .sub("revoke", "take a key back for good", keyArgument())
    .option("--with-issued", "with an admin key, revoke the model keys that it issued too")
    .more(`
Requests of the key that are under way end, and nothing makes it valid again. "trunkline keys disable" can be undone.
With an admin key, the admin and viewer keys that it issued over the admin API are revoked too, and so on; the model keys
that any of them issued are listed, and stay unless --with-issued is given. Join lines that they made and no machine has
used pair nobody any more.

Examples:
  trunkline keys revoke 0aB1cD2eF3gH
  trunkline keys revoke 0aB1cD2eF3gH --with-issued`)
    .does(onStore, async (store, id: KeyId, { withIssued = false }: { readonly withIssued?: boolean }) => {
      const sent = { params: { id }, query: { with_issued: String(withIssued) } };
      const answer = await runOn(store, revokeKey, sent);
      const { revoked_with_it: revoked = [], issued_and_stay: stay = [], replicated } = answer;
      const isNew = answer.outcome !== "unchanged";
      const names = await namesOfKeys(store.keys);
      const called = (each: KeyId): string => (names.has(each) ? `${each} (${names.get(each)})` : each);
      const lines = [
        `${called(id)} ${isNew ? "is revoked" : "was revoked before"}`,
        ...revoked.map((each) => `${called(each)}, which it issued, is revoked with it`),
        ...stay.map((each) => `${called(each)}, which it issued, stays: --with-issued revokes it`),
      ];
      const outcome = isNew ? "revoked" : "already_revoked";
      return {
        answer: { id, outcome, with: answer.revoked_with_it, stay: answer.issued_and_stay, replicated },
        text: lines.join("\n"),
      };
    });
}
