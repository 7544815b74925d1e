import { changeKey, type KeyChange, revokeKey } from "#shared/records/change-key.ts";
import { type KeyRecord, storedTerms } from "#shared/records/key-record.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import { showKey, type ShownKey } from "#shared/records/shown-key.ts";
import type { CliCommand, JsonOption, CliContext } from "../terminal/command-line.ts";
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
import { changedRecord, noSuchKey, tellChange } from "../site/with-key-store.ts";

interface Options extends JsonOption {
  readonly name?: string;
  readonly scopes?: readonly string[];
}

/** Adds the commands that change a key and keep its secret. */
export function addChanges(keys: CliCommand, context: CliContext): void {
  keys
    .command("extend")
    .description("make a key valid for longer")
    .addArgument(keyArgument())
    .addOption(ttlOption("how long it is valid from now on, such as 90d or 12h"))
    .json()
    .more(`
A key that expired less than 90 days ago is valid again. To make a key's time shorter, disable or revoke it.

Example:
  trunkline keys extend 0aB1cD2eF3gH --ttl 365d`)
    .action((id: KeyId, { ttl: ttlMs, ...given }: { readonly ttl: number } & JsonOption) =>
      changeAndTell(id, { action: "extended", ttlMs }, { given, context }, (shown) => {
        const butDisabled = shown.state === "disabled" ? ", and stays disabled" : "";
        return `${id} (${shown.name}) expires ${utcTime(shown.expires_at)}${butDisabled}`;
      }),
    );

  addChange(keys, context);

  keys
    .command("disable")
    .description("refuse a key until it is enabled again")
    .addArgument(keyArgument())
    .json()
    .more(`
Requests of the key that are under way end. To take a key back for good, revoke it.

Example:
  trunkline keys disable 0aB1cD2eF3gH`)
    .action((id: KeyId, given: JsonOption) =>
      changeAndTell(id, { action: "disabled" }, { given, context }, ({ name }, outcome) =>
        outcome === "changed" ? `${id} (${name}) is disabled` : `${id} (${name}) was disabled before`,
      ),
    );

  keys
    .command("enable")
    .description("accept a key again that was disabled")
    .addArgument(keyArgument())
    .json()
    .more("\nExample:\n  trunkline keys enable 0aB1cD2eF3gH")
    .action((id: KeyId, given: JsonOption) =>
      changeAndTell(id, { action: "enabled" }, { given, context }, ({ name, state }, outcome) => {
        const butExpired = state === "expired" ? ", but has expired: `trunkline keys extend` makes it valid" : "";
        return `${id} (${name}) ${outcome === "changed" ? "is enabled" : "was not disabled"}${butExpired}`;
      }),
    );

  addRevoke(keys, context);
}

function addChange(keys: CliCommand, context: CliContext): void {
  const { stderr, clock } = context;
  const terms = [nameOption(), scopesOption(), ...termOptions(true)];
  const change = keys
    .command("change")
    .description("change what a key is called, what it may call, and its limits")
    .addArgument(keyArgument());
  for (const option of terms) change.addOption(option);
  change
    .json()
    .more(`
What is not named stays as it is; none takes a limit away, and any frees the key from its machines.
${scopesHelp}
${limitsHelp}

Examples:
  trunkline keys change 0aB1cD2eF3gH --name "alice's laptop" --rpm 120
  trunkline keys change 0aB1cD2eF3gH --machines any --budget none`)
    .action(async (id: KeyId, given: Options) => {
      if (terms.every((option) => change.getOptionValueSource(option.attributeName()) === undefined)) {
        change.error(`error: say what to change: ${terms.map(({ long }) => long).join(", ")}.`);
      }
      const wanted = { name: given.name, scopes: given.scopes, ...storedTerms(givenTerms(given)) };
      await changeAndTell(id, { action: "changed", terms: wanted }, { given, context }, (shown, outcome) => {
        if (outcome === "unchanged") stderr.write("Nothing was changed: the key was so before.\n");
        return keyFields(shown, { nowMs: clock.wall() }).trimEnd();
      });
    });
}

function addRevoke(keys: CliCommand, context: CliContext): void {
  keys
    .command("revoke")
    .description("take a key back for good")
    .addArgument(keyArgument())
    .option("--with-issued", "with an admin key, revoke the model keys that it issued too")
    .json()
    .more(`
Requests of the key that are under way end, and nothing makes it valid again. "trunkline keys disable" can be undone.
With an admin key, the admin and viewer keys that it issued over the admin API are revoked too, and so on; the model keys
that any of them issued are listed, and stay unless --with-issued is given. Join lines that they made and no machine has
used pair nobody any more.

Examples:
  trunkline keys revoke 0aB1cD2eF3gH
  trunkline keys revoke 0aB1cD2eF3gH --with-issued`)
    .action((id: KeyId, { withIssued = false, json }: { readonly withIssued?: boolean } & JsonOption) =>
      tellChange(context, { json }, async (store) => {
        const { changed, revoked, stay } = await revokeKey({ id, withIssued }, store);
        const record = changedRecord(changed, { id, place: store.place });
        const outcome = changed.outcome === "unchanged" ? "already_revoked" : "revoked";
        const ids = (records: readonly KeyRecord[]): readonly KeyId[] => records.map((each) => each.id);
        const of = { ...(revoked.length > 0 && { with: ids(revoked) }), ...(stay.length > 0 && { stay: ids(stay) }) };
        const called = record === undefined ? id : `${id} (${record.name})`;
        const lines = [
          `${called} ${outcome === "revoked" ? "is revoked" : "was revoked before"}`,
          ...revoked.map((each) => `${each.id} (${each.name}), which it issued, is revoked with it`),
          ...stay.map((each) => `${each.id} (${each.name}), which it issued, stays: --with-issued revokes it`),
        ];
        return { changed, shown: { id, outcome, ...of }, say: () => lines.join("\n") };
      }),
    );
}

/** Changes a key and shows its new state: with `say` to a person, as JSON with all fields to a program. */
async function changeAndTell(
  id: KeyId,
  change: KeyChange,
  { given, context }: { readonly given: JsonOption; readonly context: CliContext },
  say: (shown: ShownKey, outcome: "changed" | "unchanged") => string,
): Promise<void> {
  await tellChange(context, given, async (store) => {
    const changed = await changeKey(id, change, store);
    const record = changedRecord(changed, { id, place: store.place });
    if (record === undefined) throw noSuchKey(id, store.place);
    const outcome = changed.outcome === "unchanged" ? "unchanged" : "changed";
    const shown = showKey(record, store.clock.wall());
    return { changed, shown: { ...shown, outcome }, say: () => say(shown, outcome) };
  });
}
