import { keyOperations } from "#shared/admin/key-operations.ts";
import { runOn } from "#shared/admin/run-on.ts";
import { namesOfKeys } from "#shared/records/find-keys.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import { formatDuration } from "#shared/records/shown-key.ts";
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
import { tellChange } from "../site/with-key-store.ts";

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
    .action((id: KeyId, { ttl, ...given }: { readonly ttl: number } & JsonOption) =>
      tellChange(context, given, async (store) => {
        const body = { ttl: formatDuration(ttl) };
        const answer = await runOn(store, keyOperations.extendKey, { params: { id }, body });
        const { name, state, expires_at: until } = answer;
        return [
          answer,
          `${id} (${name}) expires ${utcTime(until)}${state === "disabled" ? ", and stays disabled" : ""}`,
        ];
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
      tellChange(context, given, async (store) => {
        const answer = await runOn(store, keyOperations.disableKey, { params: { id } });
        const said = answer.outcome === "unchanged" ? "was disabled before" : "is disabled";
        return [answer, `${id} (${answer.name}) ${said}`];
      }),
    );

  keys
    .command("enable")
    .description("accept a key again that was disabled")
    .addArgument(keyArgument())
    .json()
    .more("\nExample:\n  trunkline keys enable 0aB1cD2eF3gH")
    .action((id: KeyId, given: JsonOption) =>
      tellChange(context, given, async (store) => {
        const answer = await runOn(store, keyOperations.enableKey, { params: { id } });
        const said = answer.outcome === "unchanged" ? "was not disabled" : "is enabled";
        const butExpired =
          answer.state === "expired" ? ", but has expired: `trunkline keys extend` makes it valid" : "";
        return [answer, `${id} (${answer.name}) ${said}${butExpired}`];
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
      const body = { name: given.name, scopes: given.scopes, ...givenTerms(given) };
      await tellChange(context, given, async (store) => {
        const answer = await runOn(store, keyOperations.changeKey, { params: { id }, body });
        const { outcome, ...shown } = answer;
        if (outcome === "unchanged" && !given.json) stderr.write("Nothing was changed: the key was so before.\n");
        return [answer, keyFields(shown, { nowMs: clock.wall() }).trimEnd()];
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
    .action((id: KeyId, { withIssued = false, ...given }: { readonly withIssued?: boolean } & JsonOption) =>
      tellChange(context, given, async (store) => {
        const query = { with_issued: String(withIssued) };
        const answer = await runOn(store, keyOperations.revokeKey, { params: { id }, query });
        const { revoked_with_it: revoked, issued_and_stay: stay, replicated } = answer;
        const isNew = answer.outcome !== "unchanged";
        const names = await namesOfKeys(store.keys);
        const called = (each: KeyId): string => (names.has(each) ? `${each} (${names.get(each)})` : each);
        const lines = [
          `${called(id)} ${isNew ? "is revoked" : "was revoked before"}`,
          ...(revoked ?? []).map((each) => `${called(each)}, which it issued, is revoked with it`),
          ...(stay ?? []).map((each) => `${called(each)}, which it issued, stays: --with-issued revokes it`),
        ];
        const outcome = isNew ? "revoked" : "already_revoked";
        return [{ id, outcome, with: revoked, stay, replicated }, lines.join("\n")];
      }),
    );
}
