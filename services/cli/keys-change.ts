import { type Command, Option } from "commander";
import { changeKey, type KeyChange, replicatedIn, revokeKey } from "#shared/keys/change-key.ts";
import { duration, formatDuration, showKey, type ShownKey } from "#shared/keys/shown-key.ts";
import { defaultTtlMs } from "#shared/keys/issue-key.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import { type GivenJson, jsonOption, readBy, type Surroundings } from "./command-line.ts";
import {
  givenTerms,
  type GivenTerms,
  keyArgument,
  limitingOptions,
  limitsHelp,
  nameOption,
  scopesHelp,
  scopesOption,
} from "./key-options.ts";
import { keyFields } from "./keys-show.ts";
import { utcTime } from "./quantity-text.ts";
import { actor, changedRecord, noSuchKey, replicationLine, withKeyStore } from "./with-key-store.ts";

interface Given extends GivenTerms, GivenJson {
  readonly name?: string;
  readonly scopes?: readonly string[];
}

export function addChange(keys: Command, surroundings: Surroundings): void {
  const { stderr, clock } = surroundings;
  const here = new Option("--no-elsewhere", "keep it from machines that are elsewhere");
  const terms = [nameOption(), scopesOption(), ...limitingOptions(), here];
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
that any of them issued are listed, and stay unless --with-issued is given. Join lines that they made and no machine has
used pair nobody any more.

Examples:
  trunkline keys revoke 0aB1cD2eF3gH
  trunkline keys revoke 0aB1cD2eF3gH --with-issued`,
    )
    .action((id: KeyId, { withIssued = false, json }: { readonly withIssued?: boolean } & GivenJson) =>
      withKeyStore(surroundings, { json }, async ({ keys: store, clock, place }) => {
        const dependencies = { keys: store, clock, actor: actor() };
        const { changed, revoked, stay } = await revokeKey({ id, withIssued }, dependencies);
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

/** Changes a key and shows its new state: with `tell` to a person, as JSON with all fields to a program. */
async function changeAndTell(
  wish: { readonly id: KeyId; readonly change: KeyChange } & GivenJson,
  surroundings: Surroundings,
  tell: (shown: ShownKey, outcome: "changed" | "unchanged") => string,
): Promise<void> {
  const { id, change } = wish;
  const { stdout, stderr } = surroundings;
  await withKeyStore(surroundings, wish, async ({ keys, clock, place }) => {
    const changed = await changeKey(id, change, { keys, clock, actor: actor() });
    const record = changedRecord(changed, { id, place });
    if (record === undefined) throw noSuchKey(id, place);
    const outcome = changed.outcome === "unchanged" ? "unchanged" : "changed";
    const shown = showKey(record, clock.wall());
    stdout.write(
      wish.json ? `${JSON.stringify({ ...shown, outcome, ...replicatedIn(changed) })}\n` : tell(shown, outcome),
    );
    stderr.write(replicationLine(changed));
  });
}
