import { type Command, Option } from "commander";
import { z } from "zod";
import { runOn } from "#shared/admin/run-on.ts";
import { recordOperations } from "#shared/admin/record-operations.ts";
import { namesOfKeys } from "#shared/records/find-keys.ts";
import { commaList, wholeNumber } from "#shared/process/config.ts";
import { daysAsked } from "#shared/usage/days-asked.ts";
import { usageKeptDays } from "#shared/usage/usage.ts";
import {
  meansOf,
  type SummedUsage,
  sumUsage,
  totalUsage,
  type UsageFigures,
  type UsagePart,
  usageParts,
} from "#shared/usage/sum-usage.ts";
import { commandIn, type JsonOption, readBy, type CliContext, widthOf } from "../terminal/command-line.ts";
import { givenKeys } from "../terminal/key-options.ts";
import { grouped, secondsText } from "../terminal/quantity-text.ts";
import { alignedTable, cutText } from "../terminal/table-text.ts";
import { whichStoreHelp, withKeyStore } from "../site/with-key-store.ts";

interface Options extends JsonOption {
  readonly days: number;
  readonly from?: string;
  readonly to?: string;
  readonly by: readonly UsagePart[];
  readonly key?: string;
}

const defaultDays = 7;
const writtenDay = z.iso.date("must be a day, such as 2026-01-31");
const parts: z.ZodType<readonly UsagePart[], string> = commaList
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
      await withKeyStore(context, { json }, async (store) => {
        const { data: rows, unread } = await runOn(store, recordOperations.readUsage, { query: { ...days, key } });
        if (unread > 0) stderr.write(`Left out: ${unread} rows whose counts are more than can have been used.\n`);
        const names = await namesOfKeys(store.keys);
        const nameOf = (keyId: string): string | undefined => names.get(keyId);
        const [sums, total] = [sumUsage(rows, by), totalUsage(rows)];
        if (json) {
          const shown = sums.map(({ part, ...figures }) => ({
            ...part,
            ...(part.key === undefined ? {} : { name: nameOf(part.key) ?? null }),
            ...shownUsage(figures),
          }));
          stdout.write(`${JSON.stringify({ ...days, usage: shown, total: shownUsage(total) })}\n`);
        } else if (rows.length > 0) stdout.write(usageTable({ sums, total, by, nameOf, widthMax: widthOf(stdout) }));
        else stderr.write(`Nothing was used from ${from} to ${to}.\n`);
      });
    });
  return usage;
}

const textWidthMax = 40;
const numbers = ["requests", "failed", "tokens in", "tokens out", "first token", "duration"] as const;

/**
 * Formats usage as a table: a line for each sum, and a line with the total. The columns on the left are in the order of
 * `by`.
 */
function usageTable(usage: {
  readonly sums: readonly SummedUsage[];
  readonly total: UsageFigures;
  readonly by: readonly UsagePart[];
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
      ...sums.map((sum) => [...cellsOfPart(sum).map((cell) => cutText(cell, textWidthMax)), ...cellsOf(sum)]),
      [...headings.map((_, at) => (at === 0 ? "total" : "")), ...cellsOf(total)],
    ],
    { right: numbers, wrap: ["name", "model"], widthMax },
  );
}

function cellsOf(figures: UsageFigures): string[] {
  const means = meansOf(figures);
  const counts = [figures.requests, figures.failed, figures.prompt_tokens, figures.completion_tokens];
  const times = [means.firstTokenMs, means.durationMs].map((ms) => (ms === null ? "-" : secondsText(ms)));
  return [...counts.map((count) => grouped.format(count)), ...times];
}

/** Returns usage for JSON output. The means are null when there was no request. */
function shownUsage(figures: UsageFigures): object {
  const { firstTokenMs, durationMs } = meansOf(figures);
  return {
    ...figures,
    mean_first_token_ms: firstTokenMs && Math.round(firstTokenMs),
    mean_duration_ms: durationMs && Math.round(durationMs),
  };
}
