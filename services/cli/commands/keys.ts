import { type Command, Option } from "commander";
import { keyOperations } from "#shared/admin/key-operations.ts";
import { runOn } from "#shared/admin/run-on.ts";
import { defaultGraceMs } from "#shared/records/change-key.ts";
import { adminTtlMsMax } from "#shared/records/issue-key.ts";
import { type KeyId, type KeyKind, keyKinds } from "#shared/keys/key-token.ts";
import { teamName } from "#shared/protocol/identifiers.ts";
import { formatDuration } from "#shared/process/quantities.ts";
import { durationOrNone, type ShownKey } from "#shared/records/shown-key.ts";
import { type CliCommand, commandIn, type JsonOption, readBy, type CliContext } from "../terminal/command-line.ts";
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
import { addStates } from "./keys-change.ts";
import { addLog, addViews, keyFields } from "./keys-show.ts";
import { utcTime } from "../terminal/quantity-text.ts";
import { onStore, replicationLine, whichStoreHelp } from "../site/with-key-store.ts";

const { changeKey, extendKey, issueKey, rotateKey } = keyOperations;

export function keysCommand(context: CliContext): Command {
  const keys = commandIn("keys", context).more(`
Examples:
  trunkline keys issue --name alice --scopes 'llama3.2,qwen*' --rpm 60 --budget 1M/month
  trunkline keys list
  trunkline keys rotate 0aB1cD2eF3gH --grace 24h
${whichStoreHelp}`);
  addIssue(keys);
  addViews(keys);
  addRotate(keys);
  addTerms(keys);
  addStates(keys);
  addLog(keys);
  return keys;
}

interface OutputOptions extends JsonOption {
  readonly quiet?: true;
}

/** Makes the option for `export TRUNKLINE_KEY=$(…)`. */
function quietOption(): Option {
  return new Option("--quiet", "print the key alone, for scripts").conflicts("json");
}

/** The store, as silent with `--quiet` as with `--json`. */
const onStoreForScripts: typeof onStore = {
  open: (context, given: OutputOptions, work) => onStore.open(context, { json: given.json ?? given.quiet }, work),
};

interface Options extends OutputOptions {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly ttl: number;
  readonly admin?: true;
  readonly viewer?: true;
  readonly team?: string;
}

function addIssue(keys: CliCommand): void {
  const limiting = termOptions(false);
  const aboutModels = ["scopes", "team", ...limiting.map((option) => option.attributeName())];
  const issue: CliCommand = keys
    .sub("issue", "make a key and show it, once")
    .addOption(nameOption().makeOptionMandatory())
    .addOption(scopesOption().default(["*"], "*, every model"))
    .addOption(ttlOption("how long it is valid, such as 90d, 12h, 30m or 45s"))
    .option("--team <team>", "the team whose terms hold for it too", readBy(teamName));
  for (const option of limiting) issue.addOption(option);
  const admin = new Option("--admin", "make a key for the admin API, which manages keys and calls no models");
  const viewer = new Option("--viewer", "make a key that only reads the admin API, for consoles and monitoring");
  issue
    .addOption(admin.conflicts(aboutModels))
    .addOption(viewer.conflicts(["admin", ...aboutModels]))
    .addOption(quietOption())
    .more(`${scopesHelp}
${limitsHelp}

Examples:
  trunkline keys issue --name alice
  trunkline keys issue --name ci --scopes 'llama3.2,qwen*' --machines attic --ttl 12h --json
  trunkline keys issue --name app --rpm 60 --tpm 100k --concurrency 4 --budget 2M/month
  trunkline keys issue --name batch --team research
  trunkline keys issue --name console --admin --ttl 30d
  trunkline keys issue --name monitoring --viewer
  export TRUNKLINE_KEY=$(trunkline keys issue --name alice --quiet)`)
    .hook("preAction", () => {
      const { admin: isAdmin, ttl } = issue.opts<Options>();
      if (isAdmin && ttl > adminTtlMsMax)
        issue.error(`error: the --ttl of an admin key must be at most ${formatDuration(adminTtlMsMax)}.`);
    })
    .does(onStoreForScripts, async (store, given: Options) => {
      const { name, scopes, ttl, team } = given;
      const kind = given.admin ? "admin" : given.viewer ? "viewer" : "model";
      const body = { kind, name, scopes, ttl: formatDuration(ttl), team, ...givenTerms(given) } as const;
      const { key, ...shown } = await runOn(store, issueKey, { body });
      return secretTold(key, shown, { ...given, nowMs: store.clock.wall() });
    });
}

interface ChangeOptions {
  readonly name?: string;
  readonly scopes?: readonly string[];
}

/** Adds the commands that change for how long a key is valid, and its other terms. */
function addTerms(keys: CliCommand): void {
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
    .does(onStore, async (store, id: KeyId, given: ChangeOptions) => {
      const body = { name: given.name, scopes: given.scopes, ...givenTerms(given) };
      const answer = await runOn(store, changeKey, { params: { id }, body });
      const { outcome, ...shown } = answer;
      const remark = outcome === "unchanged" ? "Nothing was changed: the key was so before." : "";
      return { answer, text: keyFields(shown, { nowMs: clock.wall() }), remark };
    });
}

interface RotateOptions extends OutputOptions {
  readonly grace: number;
  readonly kind: KeyKind;
}

function addRotate(keys: CliCommand): void {
  const graceOption = new Option("--grace <duration>", "how long the old secret stays good; 0s: not at all");
  const kindOption = new Option("--kind <kind>", "the kind that the key must have");
  keys
    .sub("rotate", "give a key another secret and show it, once", keyArgument())
    .addOption(graceOption.argParser(readBy(durationOrNone)).default(defaultGraceMs, formatDuration(defaultGraceMs)))
    .addOption(kindOption.choices(keyKinds).default("model" satisfies KeyKind))
    .addOption(quietOption())
    .more(`
The id, the terms, the expiry and the usage of the key stay. If a secret has leaked, give no grace: requests
with any old one are refused at once.

Examples:
  trunkline keys rotate 0aB1cD2eF3gH
  trunkline keys rotate 0aB1cD2eF3gH --grace 0s
  trunkline keys rotate 0aB1cD2eF3gH --kind admin`)
    .does(onStoreForScripts, async (store, id: KeyId, { grace, kind, ...given }: RotateOptions) => {
      const body = { grace: formatDuration(grace), kind };
      const { key, replicated, ...shown } = await runOn(store, rotateKey, { params: { id }, body });
      const told = secretTold(key, shown, { ...given, nowMs: store.clock.wall() });
      const remark = given.quiet ? "" : oldSecretLine(shown);
      return { ...told, warning: `${told.warning}${replicationLine({ replicated })}`, remark };
    });
}

function oldSecretLine({ old_secrets_valid_until: [until], expires_at: end }: ShownKey): string {
  if (until === undefined) return "The old secret is not good any more.\n";
  return `The old secret stays good until ${utcTime(until < end ? until : end)}.\n`;
}

/** Tells a new key with its secret. The secret cannot be shown again. */
function secretTold(
  key: string,
  { id, ...shown }: ShownKey,
  { quiet, nowMs }: Pick<OutputOptions, "quiet"> & { readonly nowMs: number },
) {
  return {
    answer: { id, key, ...shown },
    text: quiet ? key : keyFields({ id, ...shown }, { nowMs, key }),
    warning: quiet ? "" : "Keep the key now: it cannot be shown again.\n",
  };
}
