import { Option, type Command } from "commander";
import { auditEntriesMax, type AuditEntry } from "#shared/keys/audit-entry.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import { wholeNumber } from "#shared/process/config.ts";
import { jsonOption, type GivenJson } from "../json-option.ts";
import { readBy } from "../read-by.ts";
import type { Surroundings } from "../surroundings.ts";
import { alignedTable } from "../text/aligned-table.ts";
import { cutText } from "../text/cut-text.ts";
import { utcTime } from "../text/utc-time.ts";
import { withKeyStore } from "../with-key-store.ts";
import { detailText } from "./detail-text.ts";
import { givenKeyId } from "./given-key-id.ts";

interface Given extends GivenJson {
  readonly limit: number;
  readonly key?: KeyId;
}

const defaultLimit = 50;
const nameWidthMax = 40;
const detailWidthMax = 80;

export function addLog(keys: Command, surroundings: Surroundings): void {
  const { stdout, stderr } = surroundings;
  keys
    .command("log")
    .description("show who did what to which key or machine, the latest last")
    .addOption(
      new Option("--limit <count>", "how many of the latest entries")
        .argParser(readBy(wholeNumber(1, auditEntriesMax)))
        .default(defaultLimit),
    )
    .addOption(new Option("--key <id>", "only what was done to this key").argParser(givenKeyId))
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Examples:
  trunkline keys log
  trunkline keys log --key 0aB1cD2eF3gH --limit 5
  trunkline keys log --limit 1000 --json`,
    )
    .action(({ limit, key, json }: Given) =>
      withKeyStore(surroundings, { json }, async ({ keys: store }) => {
        const entries = await store.log({ entriesMax: limit, key });
        if (json) stdout.write(`${JSON.stringify(entries.map(shownEntry))}\n`);
        else if (entries.length > 0) stdout.write(tableOf(entries));
        else stderr.write(key === undefined ? "Nothing was done to any key yet.\n" : `Nothing is known of ${key}.\n`);
      }),
    );
}

function tableOf(entries: readonly AuditEntry[]): string {
  return alignedTable(
    ["time", "who", "what", "key", "name", "detail"],
    entries.map((entry) => [
      utcTime(entry.at),
      entry.by,
      entry.action,
      entry.key ?? "machine",
      cutText(entry.name, nameWidthMax),
      cutText(detailText(entry.detail), detailWidthMax),
    ]),
  );
}

function shownEntry({ at, detail, request, ...same }: AuditEntry): object {
  return { ...same, at: new Date(at).toISOString(), detail: detail ?? null, request: request ?? null };
}
