import { Option } from "commander";
import { z } from "zod";
import type { AnswerTo } from "#shared/admin/admin-call.ts";
import { keyOperations } from "#shared/admin/key-operations.ts";
import { limitRows, limitsText, termRows, termText } from "#shared/admin/key-terms.ts";
import { recordOperations } from "#shared/admin/record-operations.ts";
import { runOn } from "#shared/admin/run-on.ts";
import { detailText } from "#shared/admin/trail-text.ts";
import { type AuditAction, auditActions, auditEntriesMax, recordOf } from "#shared/records/audit-entry.ts";
import { type KeyState, keyStates } from "#shared/records/key-record.ts";
import type { KeyId, KeyKind } from "#shared/keys/key-token.ts";
import type { ShownKey } from "#shared/records/shown-key.ts";
import { dayMs } from "#shared/process/clock.ts";
import { commaList, wholeNumber } from "#shared/process/config.ts";
import { teamName } from "#shared/protocol/identifiers.ts";
import { printOf } from "#shared/records/person-record.ts";
import { type CliCommand, readBy } from "../terminal/command-line.ts";
import { connectMark, givenKeys, keyArgument } from "../terminal/key-options.ts";
import { countText, fromNow } from "#shared/process/quantities.ts";
import { utcTime } from "../terminal/quantity-text.ts";
import { type TextColumn, cutText, type Field, fieldLines, listed } from "../terminal/table-text.ts";
import { onStore } from "../site/with-key-store.ts";

/** Each column with the keys of which it tells something. It is left out where there is none of them. */
const columns: readonly (readonly [TextColumn<ShownKey>, tells?: (key: ShownKey) => boolean])[] = [
  [["id", ({ id }) => id]],
  [["name", ({ name }) => cut(name), "wrap"]],
  [["kind", ({ kind }) => kind], ({ kind }) => kind !== "model"],
  [["scopes", ({ kind, scopes }) => (kind === "model" ? cut(scopes.join(", ")) : "-"), "wrap"]],
  ...termRows
    .filter((each) => !limitRows.includes(each))
    .map(([name, row]): (typeof columns)[number] => {
      const cell = (key: ShownKey) => cut((key.kind === "model" && termText([name, row], key, countText)) || "-");
      return [[row.label ?? name, cell, "wrap"], (key) => (key[name] ?? null) !== null];
    }),
  [
    ["limits", (key) => (key.kind === "model" ? cut(limitsText(key, countText) || "none") : "-"), "wrap"],
    (key) => limitsText(key, countText) !== "",
  ],
  [["team", ({ team }) => team ?? "-"], ({ team }) => team !== undefined],
  [["person", ({ person }) => (person === undefined ? "-" : printOf(person))], ({ person }) => person !== undefined],
  [["state", ({ state }) => state]],
  [["expires", (key) => utcTime(key.expires_at)]],
];

const cellWidthMax = 40;
const cut = (text: string): string => cutText(text, cellWidthMax);

const states: z.ZodType<readonly KeyState[], string> = commaList.pipe(
  z.array(z.enum(keyStates, `must be one or more of ${keyStates.join(", ")}`)),
);

interface KeyListOptions {
  readonly state?: readonly KeyState[];
  readonly team?: string;
  readonly all?: true;
}

/** Adds the commands that list and show keys. */
export function addViews(keys: CliCommand): void {
  keys
    .sub("list", "show all keys, without their secrets")
    .option("--all", "also keys that `trunkline connect` has revoked")
    .option("--state <states>", `only keys that are ${keyStates.join(", ")}`, readBy(states))
    .option("--team <team>", "only keys of this team", readBy(teamName))
    .more(`
Keys that expired are listed for another 90 days. What is too long for the table is cut, and "trunkline keys show <id>"
shows it whole.

Examples:
  trunkline keys list
  trunkline keys list --state valid,disabled
  trunkline keys list --all
  trunkline keys list --json`)
    .does(onStore, async (store, { state, team, all: isAll }: KeyListOptions) => {
      const everyKey = { params: {}, query: { limit: Infinity, team }, body: {} };
      const { data: all, unread } = await keyOperations.listKeys.run(everyKey, store);
      const isOld = (key: ShownKey): boolean => key.state === "revoked" && key.name.endsWith(connectMark);
      const wanted = all.filter((key) => state?.includes(key.state) ?? (isAll || !isOld(key)));
      const none =
        state !== undefined && all.length > 0
          ? `No key is ${state.join(" or ")}.\n`
          : "There are no keys yet; `trunkline keys issue --name <name>` makes one.\n";
      const hidden = state === undefined ? all.length - wanted.length : 0;
      const hiddenLine = `Revoked keys of \`trunkline connect\`, not shown without --all: ${hidden}`;
      const shown = columns.filter(([, tells]) => tells === undefined || wanted.some(tells));
      const { text, remark = "" } = listed(
        shown.map(([column]) => column),
        wanted,
        none,
      );
      return { answer: wanted, text, unread, remark: remark + (hidden > 0 ? hiddenLine : "") };
    });
  keys
    .sub("show", "show all that is known of a key, without its secret", keyArgument())
    .more("\nExample:\n  trunkline keys show 0aB1cD2eF3gH")
    .does(onStore, async (store, id: KeyId) => {
      const answer = await runOn(store, keyOperations.showKey, { params: { id } });
      return { answer, text: keyFields(answer, { nowMs: store.clock.wall() }) };
    });
}

interface LogOptions {
  readonly limit: number;
  readonly key?: string;
  readonly by?: string;
  readonly about?: string;
  readonly action?: AuditAction;
  readonly day?: string;
}

const defaultLimit = 50;
const detailWidthMax = 80;

type LogEntry = AnswerTo<"GET /log">["data"][number];

const logColumns: readonly TextColumn<LogEntry>[] = [
  ["time", ({ at }) => utcTime(at)],
  ["who", ({ by }) => by, "wrap"],
  ["what", ({ action }) => action],
  ["key", (entry) => entry.key ?? recordOf(entry)?.[0] ?? "-"],
  ["name", ({ name }) => cut(name), "wrap"],
  ["detail", ({ detail }) => cutText(detailText(detail, { count: countText, time: utcTime }), detailWidthMax), "wrap"],
];

export function addLog(keys: CliCommand): void {
  keys
    .sub("log", "show who did what to which key, machine, route or kept model, and who signed in, the latest last")
    .option("--limit <count>", "how many of the latest entries", readBy(wholeNumber(1, auditEntriesMax)), defaultLimit)
    .option("--key <key>", "only what was done to the key with this id, or to those with this name", givenKeys)
    .option("--by <author>", "only by authors with this in their name, or in that of their key")
    .addOption(new Option("--action <action>", "only this").choices(auditActions))
    .option("--about <name>", "only about what has this in its name or id")
    .option("--day <day>", "only of this day (UTC), such as 2026-01-31", readBy(z.iso.date("must be a day")))
    .more(`
Examples:
  trunkline keys log
  trunkline keys log --by alice --day 2026-01-31
  trunkline keys log --key 0aB1cD2eF3gH --limit 5
  trunkline keys log --limit 1000 --json`)
    .does(onStore, async (store, { limit, key, by, about, action, day }: LogOptions) => {
      const since = day && `${day}T00:00:00Z`;
      const until = since && new Date(Date.parse(since) + dayMs).toISOString();
      const query = { limit, key, by, about, action, since, until };
      const { data, unread } = await recordOperations.readLog.run({ params: {}, query, body: {} }, store);
      const none = key === undefined ? "No change is found." : `Nothing is known of ${key}.`;
      return { answer: data.map(withoutSubjects), unread, ...listed(logColumns, data, none) };
    });
}

/** Leaves out the kinds of things that an entry is not about. */
function withoutSubjects(entry: LogEntry): object {
  const isLeftOut = (name: string, value: unknown): boolean =>
    value === null && name !== "detail" && name !== "request";
  return Object.fromEntries(Object.entries(entry).filter(([name, value]) => !isLeftOut(name, value)));
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
    ["team", shown.team],
    ["person", shown.person && printOf(shown.person)],
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
