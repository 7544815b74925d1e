import { type Command, Option } from "commander";
import { z } from "zod";
import { runOn } from "#shared/admin/run-on.ts";
import { recordOperations } from "#shared/admin/record-operations.ts";
import { personId, teamName } from "#shared/protocol/identifiers.ts";
import { printOf } from "#shared/records/person-record.ts";
import { namesOfKeys } from "#shared/records/find-keys.ts";
import { amountsText, noCurrency } from "#shared/money/money.ts";
import { commaList, wholeNumber } from "#shared/process/config.ts";
import { daysAsked } from "#shared/usage/days-asked.ts";
import { usageKeptDays } from "#shared/usage/usage.ts";
import {
  type CutPart,
  cutParts,
  meansOf,
  type SummedUsage,
  sumUsage,
  totalUsage,
  type UsageFigures,
  type AnyUsagePart,
  usageParts,
} from "#shared/usage/sum-usage.ts";
import { type CliCommand, commandIn, readBy, type CliContext } from "../terminal/command-line.ts";
import { givenKeys } from "../terminal/key-options.ts";
import { grouped, secondsText } from "../terminal/quantity-text.ts";
import { type TextColumn, cutText, listed } from "../terminal/table-text.ts";
import { onStore, whichStoreHelp } from "../site/with-key-store.ts";
import { findPerson } from "./people.ts";
import { addHistory } from "./usage-history.ts";

interface Options {
  readonly days: number;
  readonly from?: string;
  readonly to?: string;
  readonly by: readonly AnyUsagePart[];
  readonly key?: string;
  readonly team?: string;
  readonly person?: string;
}

const isCut = (part: AnyUsagePart): part is CutPart => cutParts.some((each) => each === part);
const onlyWith: Readonly<Record<CutPart, readonly AnyUsagePart[]>> = { machine: ["day"], user: ["key", "day"] };
const allParts = [...usageParts, ...cutParts] as const;

const defaultDays = 7;
const writtenDay = z.iso.date("must be a day, such as 2026-01-31");
const parts: z.ZodType<readonly AnyUsagePart[], string> = commaList
  .pipe(z.array(z.enum(allParts, `must be one or more of ${allParts.join(", ")}`)))
  .transform((each) => [...new Set(each)])
  .superRefine((each, context) => {
    const cut = each.find(isCut);
    if (cut === undefined || each.every((part) => [cut, ...onlyWith[cut]].includes(part))) return;
    context.addIssue(`can combine ${cut} with ${onlyWith[cut].join(" and ")} alone`);
  });

export function usageCommand(context: CliContext): Command {
  const { clock } = context;
  const daysOption = new Option("--days <count>", "how many days, the last one included").argParser(
    readBy(wholeNumber(1, usageKeptDays)),
  );
  const byOption = new Option("--by <parts>", `what to tell apart, with commas between: ${allParts.join(", ")}`);
  const usage: CliCommand = commandIn("usage", context)
    .enablePositionalOptions()
    .addOption(daysOption.default(defaultDays).conflicts("from"))
    .option("--from <day>", "the first day, in place of --days", readBy(writtenDay))
    .option("--to <day>", "the last day (default: today)", readBy(writtenDay))
    .addOption(byOption.argParser(readBy(parts)).default(["key", "model"], "key,model"))
    .option("--key <key>", "only of the key with this id, or of those with this name", givenKeys)
    .option("--team <team>", "only of keys of this team, as they were then", readBy(teamName))
    .option("--person <person>", "only of keys of this person: an e-mail address, or an id or its beginning")
    .more(`
Days are those of UTC. "first token" is how long the first one was waited for, and "duration" how long a request took,
both in the mean. A "-" stands for the name of a key that is gone, for the model of requests that named none that
their key may use, and for a key without a team or a person. "cost" stands where something had a price.
Machines can be told apart by day, and end users by key and day; those of end users are kept for 35 days. A "-" has the use
of no machine or no named user, and what a gateway that was killed had not told of them in its last 5 seconds.

Examples:
  trunkline usage
  trunkline usage --by day --days 30
  trunkline usage --by model,day --key 0aB1cD2eF3gH
  trunkline usage --by team --days 30
  trunkline usage --by model --person anna@example.org
  trunkline usage --by machine
  trunkline usage --from 2026-01-01 --to 2026-01-31 --by key --json
${whichStoreHelp}`)
    .hook("preAction", () => {
      const { count, from, to } = daysAsked(usage.opts<Options>(), clock.wall());
      if (count < 1) usage.error(`error: ${from}, the first day, is after ${to}, the last.`);
      if (count > usageKeptDays) usage.error(`error: from ${from} to ${to} there are more than ${usageKeptDays} days.`);
    })
    .does(onStore, async (store, { by, key, team, person, ...asked }: Options) => {
      const { count: _, ...days } = daysAsked(asked, clock.wall());
      // The usage of a person who is forgotten stays under the id.
      const isId = person === undefined || personId.safeParse(person).success;
      const ofPerson = isId ? { person } : await findPerson(person, store);
      const query = { ...days, key, team, ...ofPerson, by: by.find(isCut) };
      const { data: rows, unread } = await runOn(store, recordOperations.readUsage, { query });
      const names: Names = {
        key: await namesOfKeys(store.keys),
        person: new Map((await store.people.list()).map(({ name, called }) => [name, called])),
        user: new Map(rows.map(({ user, user_name: name }) => [user ?? "", name ?? undefined])),
      };
      const [sums, total] = [sumUsage(rows, by), totalUsage(rows)];
      const shownUsage = query.by === undefined ? withMeans : withoutTimes;
      const shown = sums.map(({ part, ...figures }) => ({
        ...part,
        ...namesIn(part, names),
        ...shownUsage(figures),
      }));
      const lines = rows.length === 0 ? [] : [...sums, total];
      return {
        answer: { ...days, usage: shown, total: shownUsage(total) },
        ...listed(
          [
            ...leftColumns(by, names),
            ...countColumns,
            ...(query.by === undefined ? meanColumns : []),
            ...costColumn(lines, store.currency),
          ],
          lines,
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
/** The names of keys, of people and of end users; a removed one has none. */
type Names = Readonly<Record<"key" | "person" | "user", ReadonlyMap<string, string | undefined>>>;
const nameFields = { key: "name", person: "person_name", user: "user_name" } as const;

/** Returns the names of the parts for JSON output. */
function namesIn(part: SummedUsage["part"], names: Names): object {
  const named = (["key", "person", "user"] as const).filter((each) => part[each] !== undefined);
  return Object.fromEntries(named.map((each) => [nameFields[each], names[each].get(part[each] ?? "") ?? null]));
}

/** Returns the columns that name the parts, in the order of `by`. The first one has the word for the total. */
function leftColumns(by: readonly AnyUsagePart[], names: Names): readonly TextColumn<UsageLine>[] {
  const headings = by.flatMap((part) => (part === "key" ? (["key", "name"] as const) : [part]));
  return headings.map((heading, at): TextColumn<UsageLine> => {
    const cell = ({ part }: UsageLine): string => {
      if (part === undefined) return at === 0 ? "total" : "";
      if (heading === "name") return cutText(names.key.get(part.key ?? "") ?? "-", textWidthMax);
      const value = part[heading] ?? "-";
      if (heading === "person") return cutText(names.person.get(value) ?? printOf(value), textWidthMax);
      return cutText((heading === "user" && names.user.get(value)) || value, textWidthMax);
    };
    return ["name", "model", "person", "user"].includes(heading) ? [heading, cell, "wrap"] : [heading, cell];
  });
}

const countColumns: readonly TextColumn<UsageLine>[] = [
  ["requests", ({ requests }) => grouped.format(requests), "right"],
  ["failed", ({ failed }) => grouped.format(failed), "right"],
  ["tokens in", (figures) => grouped.format(figures.prompt_tokens), "right"],
  ["tokens out", (figures) => grouped.format(figures.completion_tokens), "right"],
];
const meanColumns: readonly TextColumn<UsageLine>[] = [
  ["first token", (figures) => meanText(meansOf(figures).firstTokenMs), "right"],
  ["duration", (figures) => meanText(meansOf(figures).durationMs), "right"],
];

/** Returns a column of costs with their points below each other, where anything had a cost. */
function costColumn(lines: readonly UsageLine[], currency: string | undefined): readonly TextColumn<UsageLine>[] {
  if (lines.every(({ cost }) => cost === 0)) return [];
  const texts = new Map(amountsText(lines.map(({ cost }) => cost)).map((text, at) => [lines[at], text]));
  return [[currency === noCurrency ? "cost" : `cost ${currency}`, (line) => texts.get(line) ?? "", "right"]];
}

function meanText(ms: number | null): string {
  return ms === null ? "-" : secondsText(ms);
}

/** Machines and end users have no times. */
function withoutTimes(figures: UsageFigures): object {
  const times = new Set(["answered", "first_token_ms", "duration_ms"]);
  return Object.fromEntries(Object.entries(figures).filter(([name]) => !times.has(name)));
}

/** Returns usage for JSON output. The means are null when there was no request. */
function withMeans(figures: UsageFigures): object {
  const { firstTokenMs, durationMs } = meansOf(figures);
  return {
    ...figures,
    mean_first_token_ms: firstTokenMs && Math.round(firstTokenMs),
    mean_duration_ms: durationMs && Math.round(durationMs),
  };
}
