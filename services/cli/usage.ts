import { Option, type Command } from "commander";
import { z } from "zod";
import type { KeyId } from "#shared/keys/key-token.ts";
import { wholeNumber } from "#shared/process/config.ts";
import { openUsage } from "#shared/usage/open-usage.ts";
import { usageKeptDays } from "#shared/usage/usage-row.ts";
import { commandIn } from "./command-in.ts";
import { jsonOption, type GivenJson } from "./json-option.ts";
import { givenKeyId } from "./keys/given-key-id.ts";
import { commaList, readBy } from "./read-by.ts";
import type { Surroundings } from "./surroundings.ts";
import { daysAsked } from "./usage/days-asked.ts";
import { shownUsage } from "./usage/shown-usage.ts";
import { sumUsage, totalUsage, usageParts, type UsagePart } from "./usage/sum-usage.ts";
import { usageTable } from "./usage/usage-table.ts";
import { whichStoreHelp, withKeyStore } from "./with-key-store.ts";

interface Given extends GivenJson {
  readonly days: number;
  readonly from?: string;
  readonly to?: string;
  readonly by: readonly UsagePart[];
  readonly key?: KeyId;
}

const defaultDays = 7;
const day = z.iso.date("must be a day, such as 2026-01-31");
const parts: z.ZodType<readonly UsagePart[], string> = commaList
  .pipe(z.array(z.enum(usageParts, `must be one or more of ${usageParts.join(", ")}`)))
  .transform((each) => [...new Set(each)]);

/** Makes the command `trunkline usage`. It reports errors as `trunkline keys` does. */
export function usageCommand(surroundings: Surroundings): Command {
  const { stdout, stderr, clock } = surroundings;
  const usage: Command = commandIn("usage", surroundings)
    .description("show requests and tokens by key, model and day")
    .addOption(
      new Option("--days <count>", "how many days, the last one included")
        .argParser(readBy(wholeNumber(1, usageKeptDays)))
        .default(defaultDays)
        .conflicts("from"),
    )
    .addOption(new Option("--from <day>", "the first day, in place of --days").argParser(readBy(day)))
    .addOption(new Option("--to <day>", "the last day (default: today)").argParser(readBy(day)))
    .addOption(
      new Option("--by <parts>", `what to tell apart, with commas between: ${usageParts.join(", ")}`)
        .argParser(readBy(parts))
        .default(["key", "model"], "key,model"),
    )
    .addOption(new Option("--key <id>", "only of this key").argParser(givenKeyId))
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Days are those of UTC. "first token" is how long the first one was waited for, and "duration" how long a request took,
both in the mean. A "-" stands for the name of a key that is gone, and for the model of requests that named none that
their key may use.

Examples:
  trunkline usage
  trunkline usage --by day --days 30
  trunkline usage --by model,day --key 0aB1cD2eF3gH
  trunkline usage --from 2026-01-01 --to 2026-01-31 --by key --json
${whichStoreHelp}`,
    )
    .action(async ({ by, key, json, ...asked }: Given) => {
      const days = daysAsked(asked, clock.wall());
      if ("wrong" in days) usage.error(`error: ${days.wrong}.`);
      await withKeyStore(surroundings, { json }, async ({ keys, state }) => {
        const all = await openUsage(state).read(days);
        const rows = all.filter(({ keyId }) => key === undefined || keyId === key);
        const names = new Map((await keys.list()).map(({ id, name }): [string, string] => [id, name]));
        const nameOf = (keyId: string): string | undefined => names.get(keyId);
        const [sums, total] = [sumUsage(rows, by), totalUsage(rows)];
        if (json) {
          const shown = sums.map(({ part, counts }) => ({
            ...part,
            ...(part.key === undefined ? {} : { name: nameOf(part.key) ?? null }),
            ...shownUsage(counts),
          }));
          stdout.write(`${JSON.stringify({ ...days, usage: shown, total: shownUsage(total) })}\n`);
        } else if (rows.length > 0) stdout.write(usageTable({ sums, total, by, nameOf }));
        else stderr.write(`Nothing was used from ${days.from} to ${days.to}.\n`);
      });
    });
  return usage;
}
