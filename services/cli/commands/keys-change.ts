import { keyOperations } from "#shared/admin/key-operations.ts";
import { runOn } from "#shared/admin/run-on.ts";
import { namesOfKeys } from "#shared/records/find-keys.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import { formatDuration } from "#shared/records/shown-key.ts";
import type { CliCommand } from "../terminal/command-line.ts";
import {
  givenTerms,
  keyArgument,
  limitsHelp,
  nameOption,
  scopesHelp,
  scopesOption,
  termOptions,
  ttlOption,
} from "../terminal/key-options.ts";
import { keyFields } from "./keys-show.ts";
import { utcTime } from "../terminal/quantity-text.ts";
import { onStore } from "../site/with-key-store.ts";

const { changeKey, disableKey, enableKey, extendKey, revokeKey } = keyOperations;

interface Options {
  readonly name?: string;
  readonly scopes?: readonly string[];
}

/** Adds the commands that change a key and keep its secret. */
export function addChanges(keys: CliCommand): void {
  keys
    .sub("extend", "make a key valid for longer", keyArgument())
    .addOption(ttlOption("how long it is valid from now on, such as 90d or 12h"))
    .more(`
A key that expired less than 90 days ago is valid again. To make a key's time shorter, disable or revoke it.

Example:
  trunkline keys extend 0aB1cD2eF3gH --ttl 365d`)
    .does(onStore, async (store, id: KeyId, { ttl }: { readonly ttl: number }) => {
      const answer = await runOn(store, extendKey, { params: { id }, body: { ttl: formatDuration(ttl) } });
      const { name, state, expires_at: until } = answer;
      const still = state === "disabled" ? ", and stays disabled" : "";
      return { answer, text: `${id} (${name}) expires ${utcTime(until)}${still}` };
    });

  addChange(keys);

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

function addChange(keys: CliCommand): void {
  const { clock } = keys.context;
  const terms = [nameOption(), scopesOption(), ...termOptions(true)];
  const change = keys
    .sub("change", "change what a key is called, what it may call, and its limits")
    .addArgument(keyArgument());
  for (const option of terms) change.addOption(option);
  const assertChange = (): void => {
    if (terms.some((option) => change.getOptionValueSource(option.attributeName()) !== undefined)) return;
    change.error(`error: say what to change: ${terms.map(({ long }) => long).join(", ")}.`);
  };
  change
    .hook("preAction", assertChange)
    .more(`
What is not named stays as it is; none takes a limit away, and any frees the key from its machines.
${scopesHelp}
${limitsHelp}

Examples:
  trunkline keys change 0aB1cD2eF3gH --name "alice's laptop" --rpm 120
  trunkline keys change 0aB1cD2eF3gH --machines any --budget none`)
    .does(onStore, async (store, id: KeyId, given: Options) => {
      const body = { name: given.name, scopes: given.scopes, ...givenTerms(given) };
      const answer = await runOn(store, changeKey, { params: { id }, body });
      const { outcome, ...shown } = answer;
      const remark = outcome === "unchanged" ? "Nothing was changed: the key was so before." : "";
      return { answer, text: keyFields(shown, { nowMs: clock.wall() }), remark };
    });
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
