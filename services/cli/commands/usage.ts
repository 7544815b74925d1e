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
import { type CliCommand, commandIn, readBy, type CliContext } from "../terminal/command-line.ts";
import { givenKeys } from "../terminal/key-options.ts";
import { grouped, secondsText } from "../terminal/quantity-text.ts";
import { type TextColumn, cutText, listed } from "../terminal/table-text.ts";
import { onStore, whichStoreHelp } from "../site/with-key-store.ts";
import { addHistory } from "./usage-history.ts";

interface Options {
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
  const { clock } = context;
  const daysOption = new Option("--days <count>", "how many days, the last one included").argParser(
    readBy(wholeNumber(1, usageKeptDays)),
  );
  const byOption = new Option("--by <parts>", `what to tell apart, with commas between: ${usageParts.join(", ")}`);
  const usage: CliCommand = commandIn("usage", context)
    .enablePositionalOptions()
    .addOption(daysOption.default(defaultDays).conflicts("from"))
    .option("--from <day>", "the first day, in place of --days", readBy(writtenDay))
    .option("--to <day>", "the last day (default: today)", readBy(writtenDay))
    .addOption(byOption.argParser(readBy(parts)).default(["key", "model"], "key,model"))
    .option("--key <key>", "only of the key with this id, or of those with this name", givenKeys)
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
    .hook("preAction", () => {
      const { count, from, to } = daysAsked(usage.opts<Options>(), clock.wall());
      if (count < 1) usage.error(`error: ${from}, the first day, is after ${to}, the last.`);
      if (count > usageKeptDays) usage.error(`error: from ${from} to ${to} there are more than ${usageKeptDays} days.`);
    })
    .does(onStore, async (store, { by, key, ...asked }: Options) => {
      const { count: _, ...days } = daysAsked(asked, clock.wall());
      const { data: rows, unread } = await runOn(store, recordOperations.readUsage, { query: { ...days, key } });
      const names = await namesOfKeys(store.keys);
      const nameOf: NameOf = (keyId) => names.get(keyId ?? "");
      const [sums, total] = [sumUsage(rows, by), totalUsage(rows)];
      const shown = sums.map(({ part, ...figures }) => ({
        ...part,
        ...(part.key === undefined ? {} : { name: nameOf(part.key) ?? null }),
        ...shownUsage(figures),
      }));
      const columns = columnsOf(by, nameOf);
      return {
        answer: { ...days, usage: shown, total: shownUsage(total) },
        ...listed(
          columns,
          rows.length === 0 ? [] : [...sums, total],
          `Nothing was used from ${days.from} to ${days.to}.`,
        ),
        warning: unread > 0 ? `Left out: ${unread} rows whose counts are more than can have been used.` : "",
      };
    });
  addHistory(usage);
  return usage;
}

const textWidthMax = 40;

/** A sum of usage, or the total, which has no part. */
type UsageLine = UsageFigures & Partial<Pick<SummedUsage, "part">>;
type NameOf = (keyId: string | undefined) => string | undefined;

/** Returns the columns of usage. Those on the left are in the order of `by`; the first one has the word for the total. */
function columnsOf(by: readonly UsagePart[], nameOf: NameOf): readonly TextColumn<UsageLine>[] {
  const headings = by.flatMap((part) => (part === "key" ? (["key", "name"] as const) : [part]));
  const left = headings.map((heading, at): TextColumn<UsageLine> => {
    const cell = ({ part }: UsageLine): string => {
      if (part === undefined) return at === 0 ? "total" : "";
      return cutText((heading === "name" ? nameOf(part.key) : part[heading]) ?? "-", textWidthMax);
    };
    return heading === "name" || heading === "model" ? [heading, cell, "wrap"] : [heading, cell];
  });
  return [...left, ...figureColumns];
}

const figureColumns: readonly TextColumn<UsageLine>[] = [
  ["requests", ({ requests }) => grouped.format(requests), "right"],
  ["failed", ({ failed }) => grouped.format(failed), "right"],
  ["tokens in", (figures) => grouped.format(figures.prompt_tokens), "right"],
  ["tokens out", (figures) => grouped.format(figures.completion_tokens), "right"],
  ["first token", (figures) => meanText(meansOf(figures).firstTokenMs), "right"],
  ["duration", (figures) => meanText(meansOf(figures).durationMs), "right"],
];

function meanText(ms: number | null): string {
  return ms === null ? "-" : secondsText(ms);
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
