import { z } from "zod";
import { keyOperations } from "#shared/admin/key-operations.ts";
import { limitRows, limitsText, termRows, termText } from "#shared/admin/key-terms.ts";
import { runOn } from "#shared/admin/run-on.ts";
import { detailText } from "#shared/admin/trail-text.ts";
import { auditEntriesMax, type AuditEntry } from "#shared/records/audit-entry.ts";
import { findKeys } from "#shared/records/find-keys.ts";
import { type KeyState, keyStates } from "#shared/records/key-record.ts";
import { readTrail, type SignIn } from "#shared/records/sign-in.ts";
import type { UnreadRecord } from "#shared/records/key-store.ts";
import type { KeyId, KeyKind } from "#shared/keys/key-token.ts";
import type { ShownKey } from "#shared/records/shown-key.ts";
import { commaList, wholeNumber } from "#shared/process/config.ts";
import { type CliCommand, type JsonOption, readBy, type CliContext, widthOf } from "../terminal/command-line.ts";
import { connectMark, givenKeys, keyArgument } from "../terminal/key-options.ts";
import { countText, fromNow, utcTime } from "../terminal/quantity-text.ts";
import { alignedTable, cutText, type Field, fieldLines } from "../terminal/table-text.ts";
import { unreadLine, withKeyStore } from "../site/with-key-store.ts";

interface KeyColumn {
  readonly heading: string;
  readonly cell: (key: ShownKey) => string;
  /**
   * True if the column has a value for the key. A column without a value for any key is left out. Columns without
   * `tells` are always shown.
   */
  readonly tells?: (key: ShownKey) => boolean;
}

const columns: readonly KeyColumn[] = [
  { heading: "id", cell: ({ id }) => id },
  { heading: "name", cell: ({ name }) => name },
  { heading: "kind", cell: ({ kind }) => kind, tells: ({ kind }) => kind !== "model" },
  { heading: "scopes", cell: ({ kind, scopes }) => (kind === "model" ? scopes.join(", ") : "-") },
  ...termRows
    .filter((each) => !limitRows.includes(each))
    .map(([name, row]): KeyColumn => {
      const cell = (key: ShownKey): string => (key.kind === "model" && termText([name, row], key, countText)) || "-";
      return { heading: row.label ?? name, cell, tells: (key) => (key[name] ?? null) !== null };
    }),
  {
    heading: "limits",
    cell: (key) => (key.kind === "model" ? limitsText(key, countText) || "none" : "-"),
    tells: (key) => limitsText(key, countText) !== "",
  },
  { heading: "state", cell: ({ state }) => state },
  { heading: "expires", cell: ({ expires_at: expiresAt }) => utcTime(expiresAt) },
];

const cellWidthMax = 40;

const states: z.ZodType<readonly KeyState[], string> = commaList.pipe(
  z.array(z.enum(keyStates, `must be one or more of ${keyStates.join(", ")}`)),
);

export function addList(keys: CliCommand, context: CliContext): void {
  const { stdout, stderr } = context;
  keys
    .command("list")
    .description("show all keys, without their secrets")
    .option("--all", "also keys that `trunkline connect` has revoked")
    .option("--state <states>", `only keys that are ${keyStates.join(", ")}`, readBy(states))
    .json()
    .more(`
Keys that expired are listed for another 90 days. What is too long for the table is cut, and "trunkline keys show <id>"
shows it whole.

Examples:
  trunkline keys list
  trunkline keys list --state valid,disabled
  trunkline keys list --all
  trunkline keys list --json`)
    .action(({ json, state, all: isAll }: { readonly state?: readonly KeyState[]; readonly all?: true } & JsonOption) =>
      withKeyStore(context, { json }, async (store) => {
        const everyKey = { params: {}, query: { limit: Infinity }, body: {} };
        const { data: all, unread } = await keyOperations.listKeys.run(everyKey, store);
        const isOld = (key: ShownKey): boolean => key.state === "revoked" && key.name.endsWith(connectMark);
        const wanted = all.filter((key) => state?.includes(key.state) ?? (isAll || !isOld(key)));
        if (json) stdout.write(`${JSON.stringify(wanted)}\n`);
        else if (wanted.length > 0) stdout.write(tableOfKeys(wanted, widthOf(stdout)));
        else if (state !== undefined && all.length > 0) stderr.write(`No key is ${state.join(" or ")}.\n`);
        else stderr.write("There are no keys yet; `trunkline keys issue --name <name>` makes one.\n");
        stderr.write(unreadLine(unread));
        const hidden = state === undefined ? all.length - wanted.length : 0;
        if (hidden > 0 && !json)
          stderr.write(`Revoked keys of \`trunkline connect\`, not shown without --all: ${hidden}\n`);
      }),
    );
}

function tableOfKeys(keys: readonly ShownKey[], widthMax: number | undefined): string {
  const telling = columns.filter(({ tells }) => tells === undefined || keys.some(tells));
  return alignedTable(
    telling.map(({ heading }) => heading),
    keys.map((key) => telling.map(({ cell }) => cutText(cell(key), cellWidthMax))),
    { wrap: ["name", "scopes", "machines", "limits"], widthMax },
  );
}

export function addShow(keys: CliCommand, context: CliContext): void {
  const { stdout } = context;
  keys
    .command("show")
    .description("show all that is known of a key, without its secret")
    .addArgument(keyArgument())
    .json()
    .more("\nExample:\n  trunkline keys show 0aB1cD2eF3gH")
    .action((id: KeyId, { json }: JsonOption) =>
      withKeyStore(context, { json }, async (store) => {
        const shown = await runOn(store, keyOperations.showKey, { params: { id } });
        stdout.write(json ? `${JSON.stringify(shown)}\n` : keyFields(shown, { nowMs: store.clock.wall() }));
      }),
    );
}

interface Options extends JsonOption {
  readonly limit: number;
  readonly key?: string;
}

const defaultLimit = 50;
const detailWidthMax = 80;

export function addLog(keys: CliCommand, context: CliContext): void {
  const { stdout, stderr } = context;
  keys
    .command("log")
    .description("show who did what to which key, machine, route or kept model, and who signed in, the latest last")
    .option("--limit <count>", "how many of the latest entries", readBy(wholeNumber(1, auditEntriesMax)), defaultLimit)
    .option("--key <key>", "only what was done to the key with this id, or to those with this name", givenKeys)
    .json()
    .more(`
Examples:
  trunkline keys log
  trunkline keys log --key 0aB1cD2eF3gH --limit 5
  trunkline keys log --limit 1000 --json`)
    .action(({ limit, key, json }: Options) =>
      withKeyStore(context, { json }, async (store) => {
        const unread: UnreadRecord[] = [];
        const keyIds = key === undefined ? undefined : await findKeys(key, store.keys);
        const entries = await readTrail(store, { entriesMax: limit, keys: keyIds }, unread);
        stderr.write(unreadLine(unread.length));
        if (json) stdout.write(`${JSON.stringify(entries.map(shownEntry))}\n`);
        else if (entries.length > 0) stdout.write(tableOfEntries(entries, widthOf(stdout)));
        else stderr.write(key === undefined ? "Nothing was done to any key yet.\n" : `Nothing is known of ${key}.\n`);
      }),
    );
}

function tableOfEntries(entries: readonly (AuditEntry | SignIn)[], widthMax: number | undefined): string {
  return alignedTable(
    ["time", "who", "what", "key", "name", "detail"],
    entries.map((entry) => [
      utcTime(entry.at),
      entry.by,
      entry.action,
      entry.key ?? (["machine", "route", "model"] as const).find((kind) => entry[kind] !== undefined) ?? "-",
      cutText(entry.name, cellWidthMax),
      cutText(detailText(entry.detail, { count: countText, time: utcTime }), detailWidthMax),
    ]),
    { wrap: ["who", "name", "detail"], widthMax },
  );
}

function shownEntry({ at, detail, request, ...same }: AuditEntry | SignIn): object {
  return { ...same, at: new Date(at).toISOString(), detail: detail ?? null, request: request ?? null };
}

const kindTexts: Record<KeyKind, string> = {
  model: "model",
  admin: "admin: for the admin API, calls no models",
  viewer: "viewer: only reads the admin API, calls no models",
};

/** Formats all fields of a key, one a line. Includes the key itself only when it was just made. */
export function keyFields(shown: ShownKey, { nowMs, key }: { readonly nowMs: number; readonly key?: string }): string {
  const expiresAtMs = Date.parse(shown.expires_at);
  return fieldLines([
    ["key", key],
    ["id", shown.id],
    ["name", shown.name],
    ["kind", kindTexts[shown.kind]],
    ["state", shown.state],
    ...(shown.kind === "model" ? termFields(shown) : []),
    ["issued by", shown.issued_by && `admin ${shown.issued_by}`],
    ["created", utcTime(shown.created_at)],
    ["expires", `${utcTime(expiresAtMs)} (${fromNow(expiresAtMs, nowMs)})`],
    ["disabled", shown.disabled_at && utcTime(shown.disabled_at)],
    ["revoked", shown.revoked_at && utcTime(shown.revoked_at)],
    // An old secret is never good for longer than its key.
    ...shown.old_secrets_valid_until.map((until): Field => [
      "old secret",
      `good until ${utcTime(Math.min(Date.parse(until), expiresAtMs))}`,
    ]),
  ]);
}

function termFields(shown: ShownKey): readonly Field[] {
  const terms = termRows.map((row): Field => [row[1].label ?? row[0], termText(row, shown, countText)]);
  return [["scopes", shown.scopes.join(", ")], ...terms];
}
