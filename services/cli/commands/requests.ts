import { amountText } from "#shared/money/money.ts";
import { z } from "zod";
import { sleep } from "#shared/process/clock.ts";
import { wholeNumber } from "#shared/process/config.ts";
import { requestOperations } from "#shared/admin/request-operations.ts";
import { contentOperations } from "#shared/admin/content-operations.ts";
import { runOn } from "#shared/admin/run-on.ts";
import { findKeys, namesOfKeys } from "#shared/records/find-keys.ts";
import { onOneLine } from "#shared/process/clean-text.ts";
import { timeText } from "#shared/process/log.ts";
import { lookedAtMax, type Range, type RequestPage } from "#shared/requests/request-records.ts";
import { markersOf } from "#shared/requests/request-words.ts";
import { stepsOf } from "#shared/requests/request-steps.ts";
import { showRequest, type ShownRequest } from "#shared/requests/shown-request.ts";
import {
  type CliCommand,
  type CliContext,
  commandIn,
  type JsonOption,
  readBy,
  widthOf,
} from "../terminal/command-line.ts";
import { untilInterrupted } from "../terminal/interrupt.ts";
import { givenKeys } from "../terminal/key-options.ts";
import { grouped, secondsText } from "../terminal/quantity-text.ts";
import { type TextColumn, type Field, fieldLines, tableOf, wrapText } from "../terminal/table-text.ts";
import { addForgetCommand, contentText } from "./requests-content.ts";
import { addRunningCommands } from "./requests-running.ts";
import { onStore, whichStoreHelp } from "../site/with-key-store.ts";

interface Options extends JsonOption {
  readonly failed?: true;
  readonly key?: string;
  readonly code?: string;
  readonly model?: string;
  readonly api?: string;
  readonly longer?: number;
  readonly machine?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit: number;
  readonly follow?: true;
}

const limitDefault = 50;
const limitMax = 1_000;
const longerMax = 86_400;
/** The interval at which `--follow` looks for new records. */
const lookEveryMs = 1_000;

export function requestsCommand(context: CliContext): CliCommand {
  const { stdout, stderr, clock } = context;
  const requests = commandIn("requests", context)
    .enablePositionalOptions()
    .option("--failed", "only those that failed")
    .option("--key <key>", "only of the key with this id, or of those with this name", givenKeys)
    .option("--code <code>", "only those with this outcome: ok, or the code of an error")
    .option(
      "--model <part>",
      "only for models with this part in their names, as asked for or as the machine names them",
    )
    .option("--api <part>", "only those whose path has this part, such as chat/completions")
    .option("--longer <seconds>", "only those that took longer than that", readBy(wholeNumber(0, longerMax)))
    .option("--machine <name>", "only those that this machine was offered")
    .option("--since <time>", "only those that arrived then or later", readBy(writtenTime))
    .option("--until <time>", "only those that arrived before then", readBy(writtenTime))
    .option("--limit <count>", "how many of the latest", readBy(wholeNumber(1, limitMax)), limitDefault)
    .option("--follow", "go on with those that end from now on, until Ctrl-C")
    .more(`
A time is one of this host's clock (14:03, or 2026-01-31 14:03), one with a zone (2026-01-31T14:03:00Z), or a time ago
(30m, 12h, 7d). "first" is the time to the first token and "total" the time of the whole request. With --json each
request is a line. "key" is the key's name, or its id where it has none any more. Records have no text of prompts and answers. The newest 100,000 of the last 7 days are kept, unless
TRUNKLINE_REQUESTS_MAX and TRUNKLINE_REQUESTS_DAYS say otherwise.

Examples:
  trunkline requests
  trunkline requests --failed --since 14:00
  trunkline requests --machine attic --follow
  trunkline requests show req_4Kd0mQ3vX8sLwZ1hTn5yBc
  trunkline requests running
${whichStoreHelp}`)
    .does(onStore, async ({ keys, requests: records }, { json, limit, follow, key, ...asked }: Options) => {
      const keyIds = key === undefined ? undefined : await findKeys(key, keys);
      const query = { ...queryOf(asked, clock.wall()), keyIds };
      let isFirst = true;
      const look = async (range: Range): Promise<RequestPage> => {
        const page = await records.find(query, range);
        const shown = page.found.map(({ record }) => showRequest(record)).toReversed();
        if (json) for (const each of shown) stdout.write(`${JSON.stringify(each)}\n`);
        else if (shown.length > 0) {
          const about = { names: await namesOfKeys(keys), widthMax: widthOf(stdout), nowMs: clock.wall() };
          const table = tableOfRequests(shown, about);
          stdout.write(isFirst ? table : table.slice(table.indexOf("\n") + 1));
          isFirst = false;
        }
        if (page.unread > 0)
          stderr.write(`Not shown, since another version of Trunkline wrote them: ${page.unread} records.\n`);
        return page;
      };
      const { found, next, latest } = await look({ limit });
      if (found.length === 0 && !json && !follow) stderr.write(nothingFound(next));
      if (!follow) return undefined;
      using interrupted = untilInterrupted();
      const { signal } = interrupted;
      for (let after = latest; !signal.aborted;) {
        await sleep(clock, lookEveryMs, signal).catch(() => undefined);
        after = (await look({ limit: Infinity, after })).latest ?? after;
      }
      return undefined;
    });
  requests
    .sub("show", "show the way of one request, and what to do about its fault")
    .argument("<id>", "its id, which its client got as x-request-id")
    .option("--content", "show its captured prompt and answer; the trail has each look before it is shown")
    .more("\nExample:\n  trunkline requests show req_4Kd0mQ3vX8sLwZ1hTn5yBc")
    .does(onStore, async (store, id: string, { content }: { readonly content?: true }) => {
      if (content) {
        const shown = await runOn(store, contentOperations.readContent, { params: { id } });
        return { answer: shown, text: contentText(shown) };
      }
      const answer = await runOn(store, requestOperations.showRequest, { params: { id } });
      const keyName = (await namesOfKeys(store.keys)).get(answer.key);
      return { answer, text: (widthMax: number | undefined) => wayOf(answer, { keyName, widthMax }) };
    });
  addForgetCommand(requests);
  addRunningCommands(requests);
  return requests;
}

function nothingFound(next: string | undefined): string {
  if (next === undefined) return "No such request has ended.\n";
  return `No such request is among the latest ${grouped.format(lookedAtMax)} (lookedAtMax); --until looks at earlier ones.\n`;
}

const units = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const ago = /^(?<count>\d{1,6})(?<unit>[smhd])$/;
const clockTime = /^\d{1,2}:\d{2}(?::\d{2})?$/;
const dayAlone = /^\d{4}-\d{2}-\d{2}$/;
/** Without a day at its front, `Date.parse` takes nearly any text for a time. */
const dated = /^\d{4}-\d{2}-\d{2}(?:[T ]|$)/;
export const writtenTime = z
  .string()
  .refine(
    (text) => ago.test(text) || timeOf(text, 0) !== undefined,
    "must be a time, such as 14:03, 2026-01-31 14:03, 2026-01-31T14:03:00Z or 30m",
  );

/** Returns the time that a text names. A time without a day is the latest such time before now. */
export function timeOf(text: string, nowMs: number): number | undefined {
  const { count, unit } = ago.exec(text)?.groups ?? {};
  if (count !== undefined) return nowMs - Number(count) * units[unit as keyof typeof units];
  const now = new Date(nowMs);
  const day = `${now.getFullYear()}-${String(now.getMonth() + 1).padStart(2, "0")}-${String(now.getDate()).padStart(2, "0")}`;
  const isClockTime = clockTime.test(text);
  if (!isClockTime && !dated.test(text)) return undefined;
  const atMs = Date.parse(isClockTime ? `${day} ${text}` : dayAlone.test(text) ? `${text} 00:00` : text);
  if (Number.isNaN(atMs)) return undefined;
  return isClockTime && atMs > nowMs ? atMs - units.d : atMs;
}

function queryOf({ since, until, longer, ...same }: Partial<Options>, nowMs: number) {
  const [sinceMs, untilMs] = [since, until].map((text) => (text === undefined ? undefined : timeOf(text, nowMs)));
  return { ...same, sinceMs, untilMs, longerMs: longer === undefined ? undefined : longer * 1_000 };
}

/** A terminal with fewer columns gets the table without those that `requests show` tells too. */
const wideMin = 110;
const narrow: ReadonlySet<string> = new Set(["time", "id", "model", "machine", "end"]);

interface ListTerms {
  /** The names of keys by their ids. */
  readonly names: ReadonlyMap<string, string>;
  readonly widthMax: number | undefined;
  readonly nowMs: number;
}

function tableOfRequests(requests: readonly ShownRequest[], { names, widthMax, nowMs }: ListTerms): string {
  const tokens = ({ machine }: ShownRequest, count: number): string => (machine === null ? "-" : grouped.format(count));
  const columns: readonly TextColumn<ShownRequest>[] = [
    ["time", ({ at }) => localTime(at, nowMs)],
    ["id", ({ id }) => id],
    ["status", ({ status }) => String(status), "right"],
    ["key", ({ key }) => names.get(key) ?? key, "wrap"],
    ["model", modelText, "wrap"],
    ["machine", ({ machine }) => machine ?? "-", "wrap"],
    ["prompt", (request) => tokens(request, request.prompt_tokens), "right"],
    ["answer", (request) => tokens(request, request.completion_tokens), "right"],
    ["first", ({ first_token_ms: ms }) => (ms === null ? "-" : secondsText(ms)), "right"],
    ["total", (request) => secondsText(request.total_ms), "right"],
    ["end", endText, "wrap"],
  ];
  const shown = columns.filter(([heading]) => widthMax === undefined || widthMax >= wideMin || narrow.has(heading));
  return tableOf(shown, requests, { widthMax });
}

function endText({ code, limit, tried }: ShownRequest): string {
  const end = limit === null ? code : `${code} (limit: ${limit})`;
  return [end, ...markersOf(tried)].join(", ");
}

function modelText({ model, answered_by: answeredBy }: ShownRequest): string {
  return answeredBy === null || answeredBy === model ? (model ?? "-") : `${model} → ${answeredBy}`;
}

/** Returns a time of this host's clock; the day stands before it unless it is today. */
function localTime(at: string, nowMs: number): string {
  const time = new Date(at);
  const isToday = time.toDateString() === new Date(nowMs).toDateString();
  const day = `${String(time.getMonth() + 1).padStart(2, "0")}-${String(time.getDate()).padStart(2, "0")}`;
  return isToday ? timeText(time.getTime()) : `${day} ${timeText(time.getTime())}`;
}

/** Formats the way of one request: its facts, a line for each step, and what to do about its fault. */
export function wayOf(
  request: z.output<typeof requestOperations.showRequest.answer>,
  { keyName, widthMax = Infinity }: { readonly keyName: string | undefined; readonly widthMax: number | undefined },
): string {
  const { prompt_tokens: prompt, cached_tokens: cached, completion_tokens: answer } = request;
  const facts: readonly Field[] = [
    ["request", request.id],
    ["arrived", request.at.replace("T", " ")],
    ["key", keyName === undefined ? request.key : `${request.key} (${keyName})`],
    ["client", [request.address, request.user_agent ?? ""].filter((each) => each !== "").join(", ")],
    ["asked", `${request.path}, ${request.streamed ? "streamed" : "in one piece"}`],
    ["model", request.model],
    ["tokens", `${grouped.format(prompt)} of the prompt${cachedText(cached)}, ${grouped.format(answer)} of the answer`],
    ["cost", request.cost == null ? undefined : amountText(request.cost)],
    ["trace", request.trace ?? undefined],
    ["limit", request.limit],
    ["content", request.captured ? "captured: --content shows it" : undefined],
  ];
  const steps = stepsOf(request);
  const width = Math.max(...steps.map(({ atMs }) => msText(atMs).length));
  const lines = steps.flatMap(({ atMs, text, aside }) =>
    [text, ...aside.map((each) => `  ${each}`)]
      .flatMap((each) => wrapText(onOneLine(each), widthMax - width - 2))
      .map((line, at) => `${(at === 0 ? msText(atMs) : "").padStart(width)}  ${line}\n`),
  );
  const advice = request.advice === null ? "" : `\n${request.advice}\n`;
  return `${fieldLines(facts.map(([name, value]) => [name, value && onOneLine(value)]))}\n${lines.join("")}${advice}`;
}

function cachedText(cached: number | null): string {
  return cached === null ? "" : ` (${grouped.format(cached)} cached)`;
}

function msText(ms: number): string {
  return `${grouped.format(ms)} ms`;
}
