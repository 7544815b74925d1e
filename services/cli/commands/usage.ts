import { type Command, Option } from "commander";
import { z } from "zod";
import { findKeys, namesOfKeys } from "#shared/records/find-keys.ts";
import { commaList, wholeNumber } from "#shared/process/config.ts";
import { daysAsked } from "#shared/usage/days-asked.ts";
import {
  addUsage,
  compareText,
  noUsage,
  openUsage,
  type UsageCounts,
  usageKeptDays,
  type UsageRow,
} from "#shared/usage/usage.ts";
import { commandIn, type JsonOption, readBy, type CliContext, widthOf } from "../terminal/command-line.ts";
import { givenKeys } from "../terminal/key-options.ts";
import { grouped, secondsText } from "../terminal/quantity-text.ts";
import { alignedTable, cutText } from "../terminal/table-text.ts";
import { whichStoreHelp, withKeyStore } from "../site/with-key-store.ts";

const usageParts = ["key", "model", "day"] as const;
type SummedBy = (typeof usageParts)[number];

interface Options extends JsonOption {
  readonly days: number;
  readonly from?: string;
  readonly to?: string;
  readonly by: readonly SummedBy[];
  readonly key?: string;
}

const defaultDays = 7;
const writtenDay = z.iso.date("must be a day, such as 2026-01-31");
const parts: z.ZodType<readonly SummedBy[], string> = commaList
  .pipe(z.array(z.enum(usageParts, `must be one or more of ${usageParts.join(", ")}`)))
  .transform((each) => [...new Set(each)]);

export function usageCommand(context: CliContext): Command {
  const { stdout, stderr, clock } = context;
  const daysOption = new Option("--days <count>", "how many days, the last one included").argParser(
    readBy(wholeNumber(1, usageKeptDays)),
  );
  const byOption = new Option("--by <parts>", `what to tell apart, with commas between: ${usageParts.join(", ")}`);
  const usage: Command = commandIn("usage", context)
    .addOption(daysOption.default(defaultDays).conflicts("from"))
    .option("--from <day>", "the first day, in place of --days", readBy(writtenDay))
    .option("--to <day>", "the last day (default: today)", readBy(writtenDay))
    .addOption(byOption.argParser(readBy(parts)).default(["key", "model"], "key,model"))
    .option("--key <key>", "only of the key with this id, or of those with this name", givenKeys)
    .json()
    .more(`
Days are those of UTC. "first token" is how long the first one was waited for, and "duration" how long a request took,
both in the mean. A "-" stands for the name of a key that is gone, and for the model of requests that named none that
their key may use.

Examples:
  trunkline usage
  trunkline usage --by day --days 30
  trunkline usage --by model,day --key 0aB1cD2eF3gH
  trunkline usage --from 2026-01-01 --to 2026-01-31 --by key --json
${whichStoreHelp}`)
    .action(async ({ by, key, json, ...asked }: Options) => {
      const { count, ...days } = daysAsked(asked, clock.wall());
      const { from, to } = days;
      if (count < 1) usage.error(`error: ${from}, the first day, is after ${to}, the last.`);
      if (count > usageKeptDays) usage.error(`error: from ${from} to ${to} there are more than ${usageKeptDays} days.`);
      await withKeyStore(context, { json }, async ({ keys, state }) => {
        const { rows: all, unread } = await openUsage(state).read(days);
        if (unread > 0) stderr.write(`Left out: ${unread} rows whose counts are more than can have been used.\n`);
        const keyIds = key === undefined ? undefined : await findKeys(key, keys);
        const rows = all.filter(({ keyId }) => keyIds === undefined || keyIds.some((each) => each === keyId));
        const names = await namesOfKeys(keys);
        const nameOf = (keyId: string): string | undefined => names.get(keyId);
        const [sums, total] = [sumUsage(rows, by), totalUsage(rows)];
        if (json) {
          const shown = sums.map(({ part, counts }) => ({
            ...part,
            ...(part.key === undefined ? {} : { name: nameOf(part.key) ?? null }),
            ...shownUsage(counts),
          }));
          stdout.write(`${JSON.stringify({ ...days, usage: shown, total: shownUsage(total) })}\n`);
        } else if (rows.length > 0) stdout.write(usageTable({ sums, total, by, nameOf, widthMax: widthOf(stdout) }));
        else stderr.write(`Nothing was used from ${from} to ${to}.\n`);
      });
    });
  return usage;
}

/** The usage of one group. A dimension that was not requested is summed over all its values. */
interface SummedUsage {
  readonly part: { readonly key?: string; readonly model?: string | null; readonly day?: string };
  readonly counts: UsageCounts;
}

/** Sums usage by the requested dimensions. Sorts by day, then by tokens with the largest first. */
export function sumUsage(rows: readonly UsageRow[], by: readonly SummedBy[]): readonly SummedUsage[] {
  const sums = new Map<string, SummedUsage>();
  for (const row of rows) {
    const part = {
      ...(by.includes("key") ? { key: row.keyId } : {}),
      ...(by.includes("model") ? { model: row.model } : {}),
      ...(by.includes("day") ? { day: row.day } : {}),
    };
    const place = JSON.stringify(part);
    sums.set(place, { part, counts: addUsage(sums.get(place)?.counts ?? noUsage, row) });
  }
  return [...sums.values()].sort(compareSums);
}

export function totalUsage(rows: readonly UsageRow[]): UsageCounts {
  return rows.reduce<UsageCounts>(addUsage, noUsage);
}

/** Returns the mean times. Null when there is no request to take a mean of. */
export function meansOf({ requests, answered, firstTokenMs, durationMs }: UsageCounts) {
  return {
    firstTokenMs: answered === 0 ? null : firstTokenMs / answered,
    durationMs: requests === 0 ? null : durationMs / requests,
  };
}

function compareSums(one: SummedUsage, other: SummedUsage): number {
  return (
    compareText(one.part.day, other.part.day) ||
    tokensOf(other.counts) - tokensOf(one.counts) ||
    other.counts.requests - one.counts.requests ||
    compareText(one.part.key, other.part.key) ||
    compareText(one.part.model, other.part.model)
  );
}

function tokensOf({ promptTokens, completionTokens }: UsageCounts): number {
  return promptTokens + completionTokens;
}

const textWidthMax = 40;
const numbers = ["requests", "failed", "tokens in", "tokens out", "first token", "duration"] as const;

/**
 * Formats usage as a table: a line for each sum, and a line with the total. The columns on the left are in the order of
 * `by`.
 */
function usageTable(usage: {
  readonly sums: readonly SummedUsage[];
  readonly total: UsageCounts;
  readonly by: readonly SummedBy[];
  readonly nameOf: (keyId: string) => string | undefined;
  readonly widthMax: number | undefined;
}): string {
  const { sums, total, by, nameOf, widthMax } = usage;
  const headings = by.flatMap((part) => (part === "key" ? ["key", "name"] : [part]));
  const cellsOfPart = ({ part }: SummedUsage): readonly string[] =>
    by.flatMap((each) => {
      if (each === "key") return [part.key ?? "", nameOf(part.key ?? "") ?? "-"];
      return [part[each] ?? "-"];
    });
  return alignedTable(
    [...headings, ...numbers],
    [
      ...sums.map((sum) => [...cellsOfPart(sum).map((cell) => cutText(cell, textWidthMax)), ...cellsOf(sum.counts)]),
      [...headings.map((_, at) => (at === 0 ? "total" : "")), ...cellsOf(total)],
    ],
    { right: numbers, wrap: ["name", "model"], widthMax },
  );
}

function cellsOf(counts: UsageCounts): string[] {
  const { firstTokenMs, durationMs } = meansOf(counts);
  return [
    grouped.format(counts.requests),
    grouped.format(counts.failed),
    grouped.format(counts.promptTokens),
    grouped.format(counts.completionTokens),
    firstTokenMs === null ? "-" : secondsText(firstTokenMs),
    durationMs === null ? "-" : secondsText(durationMs),
  ];
}

/**
 * Returns usage counts for JSON output, with the field names of the admin API. The means are null when there was no
 * request.
 */
function shownUsage(counts: UsageCounts): object {
  const { firstTokenMs, durationMs } = meansOf(counts);
  return {
    requests: counts.requests,
    failed: counts.failed,
    prompt_tokens: counts.promptTokens,
    completion_tokens: counts.completionTokens,
    answered: counts.answered,
    first_token_ms: counts.firstTokenMs,
    duration_ms: counts.durationMs,
    mean_first_token_ms: firstTokenMs && Math.round(firstTokenMs),
    mean_duration_ms: durationMs && Math.round(durationMs),
  };
}
