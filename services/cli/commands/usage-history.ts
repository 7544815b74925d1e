import { Option } from "commander";
import { historyOperations } from "#shared/admin/history-operations.ts";
import { runOn } from "#shared/admin/run-on.ts";
import type { HistorySums } from "#shared/history/read-history.ts";
import { seriesParts } from "#shared/history/sums.ts";
import { wholeNumber } from "#shared/process/config.ts";
import { onStore, whichStoreHelp } from "../site/with-key-store.ts";
import { type CliCommand, readBy } from "../terminal/command-line.ts";
import { grouped, secondsText, utcTime } from "../terminal/quantity-text.ts";
import { listed, type TextColumn } from "../terminal/table-text.ts";
import { timeOf, writtenTime } from "./requests.ts";

interface Options {
  readonly since: string;
  readonly until?: string;
  readonly step?: number;
  readonly by?: (typeof seriesParts)[number];
  readonly model?: string;
  readonly machine?: string;
}

/** Adds the command that shows the history of requests by steps of time, or by model or machine. */
export function addHistory(usage: CliCommand): void {
  const { clock } = usage.context;
  usage
    .sub("history", "show requests, tokens, waits and failures over time, or by model or machine")
    .option("--since <time>", "the beginning", readBy(writtenTime), "24h")
    .option("--until <time>", "the end (default: now)", readBy(writtenTime))
    .option("--step <seconds>", "the length of a row", readBy(wholeNumber(60, 90 * 86_400)))
    .addOption(new Option("--by <part>", "a row for each of these, in place of steps").choices(seriesParts))
    .option("--model <model>", "only of this model")
    .option("--machine <name>", "only of this machine")
    .more(`
Times are given as for "trunkline requests". Sums of minutes are kept for 48 hours, those of hours for 90 days. "p50" and "p95" are the
wait for the first token, from histograms. A gateway writes its sums once a minute.

Examples:
  trunkline usage history
  trunkline usage history --since 7d --by machine
  trunkline usage history --since 30d --step 86400 --model llama3.2 --json
${whichStoreHelp}`)
    .does(onStore, async (store, { since, until, step, by, model, machine }: Options) => {
      const [from, to] = [since, until].map((text) => text && new Date(timeOf(text, clock.wall()) ?? 0).toISOString());
      const query = { since: from, until: to, step, by, model, machine };
      const answer = await runOn(store, historyOperations.readHistory, { query });
      const rows: readonly HistoryLine[] =
        by === undefined ? answer.all.steps : answer.data.map(({ of, total }) => ({ ...total, of }));
      const columns = [[by ?? "from", nameOf], ...figureColumns] as const;
      return { answer, ...listed(columns, rows, "No request ended in this time.") };
    });
}

type HistoryLine = HistorySums & { readonly at?: string; readonly of?: string | null };

function nameOf({ at, of }: HistoryLine): string {
  return at === undefined ? (of ?? "others") : utcTime(at);
}

const figureColumns: readonly TextColumn<HistoryLine>[] = [
  ["requests", ({ requests }) => grouped.format(requests), "right"],
  ["failed", ({ failed }) => grouped.format(failed), "right"],
  ["tokens in", (sums) => grouped.format(sums.prompt_tokens), "right"],
  ["cached", (sums) => grouped.format(sums.cached_tokens), "right"],
  ["tokens out", (sums) => grouped.format(sums.completion_tokens), "right"],
  ["p50", ({ first_token_ms: ms }) => (ms === null ? "-" : secondsText(ms.p50)), "right"],
  ["p95", ({ first_token_ms: ms }) => (ms === null ? "-" : secondsText(ms.p95)), "right"],
  ["tokens/s", ({ tokens_per_second: rate }) => (rate === null ? "-" : grouped.format(rate.p50)), "right"],
];
