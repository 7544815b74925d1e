import { z } from "zod";
import type { KeyRecord } from "../records/key-record.ts";
import type { LogQuery, UnreadRecord } from "../records/key-store.ts";
import { Fault } from "../fault/fault.ts";
import { findKeys } from "../records/find-keys.ts";
import { auditActions, auditEntry, recordKinds } from "../records/audit-entry.ts";
import { actNames, readTrail } from "../records/sign-in.ts";
import { keyId } from "../keys/key-token.ts";
import { machineName, routeName } from "../protocol/identifiers.ts";
import { modelId } from "../protocol/model.ts";
import { type Days, daysAsked } from "../usage/days-asked.ts";
import { cutParts } from "../usage/sum-usage.ts";
import { readUsageBy } from "../usage/usage-by-part.ts";
import { namesOfEndUsers } from "../usage/end-users.ts";
import { addUsage, noUsage, type UsageCounts, usageKeptDays, type UsageRow, usageRow } from "../usage/usage.ts";
import { listOf, listRecords, recordsOf, onStore, keyText, pageLength, reads, timeInUrl } from "./operation.ts";

const shownEntry = auditEntry.extend({
  action: z.enum([...auditActions, ...actNames]),
  at: z.iso.datetime(),
  key: keyId.nullable().describe("The key that it was done to; null where it was none."),
  machine: machineName.nullable().describe("The machine whose record it was done to; null where it was none."),
  route: routeName.nullable().describe("The route that it was done to; null where it was none."),
  model: modelId.nullable().describe("The kept model that it was done to; null where it was none."),
  detail: auditEntry.shape.detail.unwrap().nullable(),
  request: z.string().nullable(),
});
const entryList = recordsOf(z.array(shownEntry).describe("The latest, the oldest of them first."));

const part = z.string().toLowerCase().max(200).optional();
const trailQuery = z.strictObject({
  limit: pageLength,
  key: keyText.optional(),
  by: part.describe("Only by authors who have this in their name, or in the name of their key."),
  action: shownEntry.shape.action.optional(),
  about: part.describe("Only about what has this in its name or id."),
  since: timeInUrl.optional().describe("Only then or later."),
  until: timeInUrl.optional().describe("Only before then."),
});

/** Returns the judgement of an entry of the trail by the filters of a query. */
function fitting(
  { by = "", action, about = "", since = "", until = "" }: z.output<typeof trailQuery>,
  keys: readonly KeyRecord[],
): LogQuery["fits"] {
  const authors = keys.filter(({ name }) => contains(name, by)).map(({ id }) => id);
  const [sinceMs, untilMs] = [Date.parse(since), Date.parse(until)];
  if (by + about + since + until === "" && action === undefined) return undefined;
  return (entry) =>
    (action ?? entry.action) === entry.action &&
    !(Number(entry.at) < sinceMs || Number(entry.at) >= untilMs) &&
    [by, ...authors].some((each) => contains(entry.by, each)) &&
    [entry.name, entry.key, ...recordKinds.map((kind) => entry[kind])].some((each) => contains(each, about));
}

function contains(value: unknown, words: string): boolean {
  return typeof value === "string" && value.toLowerCase().includes(words.toLowerCase());
}

const day = z.iso.date("must be a day, such as 2026-01-31");
const { day: usageDay, kind, model, requests, failed, answered } = usageRow.shape;
const partName = z.string().nullish();
const shownUsage = z.strictObject({
  day: usageDay,
  key: z.string().nullable().describe("Null in rows of machines."),
  // Gateways of 0.2.0 leave out parts and cost.
  team: partName.describe("The team of the key; null for a key of the site."),
  person: partName.describe("The id of the person whose key it is; null for a key of nobody."),
  kind: kind.optional().describe("external: the machines that answered run their models elsewhere; null for own ones."),
  machine: partName.describe("In rows of machines; null for requests that no machine took."),
  user: partName.describe(
    "The digest of the end user's name, in rows of end users; null for requests that named none.",
  ),
  user_name: partName.describe("The end user's name, cut at 64 characters; null once it is gone."),
  model: model.describe("Null for requests that named no model that the key may use."),
  requests,
  failed: failed.describe("Of these, how many did not end well."),
  prompt_tokens: usageRow.shape.promptTokens,
  completion_tokens: usageRow.shape.completionTokens,
  answered: answered.describe("Requests that had a first token: streams alone."),
  first_token_ms: usageRow.shape.firstTokenMs.describe("The waits for their first tokens, added up."),
  duration_ms: usageRow.shape.durationMs.describe("The durations of all requests, added up."),
  cost: usageRow.shape.cost.optional().describe("In millionths of the currency of the site."),
});
const usageList = listOf(z.array(shownUsage)).extend({
  unread: z
    .int()
    .nonnegative()
    .describe("The rows that are left out, since their counts are more than can have been used."),
});

const { promptTokens: tokens, cost } = usageRow.shape;
const keyUse = z.object({
  key: z.string().describe("The id of the key; or the name of the team or the id of the person, as `by` asks."),
  last_day: usageDay.describe("The latest day of these with a request."),
  tokens_of_day: tokens.describe("Tokens of prompts and answers today, as a budget for a day counts them."),
  tokens_of_month: tokens.describe("The same for this calendar month."),
  // Gateways of 0.2.0 leave out costs.
  cost_of_day: cost.optional().describe("In millionths of the currency of the site."),
  cost_of_month: cost.optional(),
});
const holderParts = ["key", "team", "person"] as const;

/** The operations of the audit log and of usage. */
export const recordOperations = {
  readLog: onStore({
    ...reads,
    path: "/log",
    summary:
      "The audit trail: the latest changes of keys, machines, routes and kept models, their authors, and sign-ins to the console",
    query: trailQuery,
    answer: entryList,
    refusals: ["key_not_found"],
    async run({ query }, parts) {
      const keyIds = query.key === undefined ? undefined : await findKeys(query.key, parts.keys);
      const wanted = {
        entriesMax: query.limit,
        keys: keyIds,
        fits: fitting(query, query.by ? await parts.keys.list() : []),
      };
      const list = (unread: UnreadRecord[]) => readTrail(parts, wanted, unread);
      return listRecords(list, ({ at, key, machine, route, model: kept, detail, request, ...same }) => ({
        ...same,
        key: key ?? null,
        machine: machine ?? null,
        route: route ?? null,
        model: kept ?? null,
        at: new Date(at).toISOString(),
        detail: detail ?? null,
        request: request ?? null,
      }));
    },
  }),
  readUsage: onStore({
    ...reads,
    path: "/usage",
    summary:
      "The usage of keys, by day, team, person, kind of machine and model; or that of machines or end users, by day",
    query: z.strictObject({
      from: day.optional().describe("The first day (UTC); by default 29 days before the last one."),
      to: day.optional().describe("The last day (UTC); by default today."),
      key: keyText.optional(),
      team: z.string().optional().describe("Only of keys of this team, as they were then."),
      person: z.string().optional().describe("Only of keys of the person with this id."),
      by: z
        .enum(cutParts)
        .optional()
        .describe(
          "Rows by machine, or by key and end user, in place of key, team, person, kind and model. They have no times. Those of users are kept for 35 days.",
        ),
    }),
    answer: usageList,
    refusals: ["key_not_found"],
    async run({ query }, { usage, keys, clock, ...site }) {
      const { by, key, team, person } = query;
      const toldApart: readonly string[] = by === undefined ? holderParts : by === "user" ? ["key"] : [];
      const wrong = holderParts.find((each) => query[each] !== undefined && !toldApart.includes(each));
      if (wrong !== undefined)
        throw new Fault("invalid_value", {
          message: `Invalid value for 'by': rows of ${by}s do not name the ${wrong}; leave out '${wrong}'.`,
          param: "by",
        });
      const keyIds = key === undefined ? undefined : await findKeys(key, keys);
      const days = usageDays(query, clock.wall());
      const { rows, unread } = await (by === undefined ? usage.read(days) : readUsageBy(by, usage, days));
      const asked = rows.filter(
        (row) =>
          (keyIds === undefined || keyIds.some((each) => each === row.keyId)) &&
          (team ?? row.team) === row.team &&
          (person ?? row.person) === row.person,
      );
      const names = await namesOfEndUsers([...new Set(asked.flatMap(({ endUser }) => endUser ?? []))], site);
      const data = asked.map((row) => ({ ...showUsage(row), user_name: names.get(row.endUser ?? "") ?? null }));
      return { object: "list" as const, data, unread };
    },
  }),
  readKeyUse: onStore({
    ...reads,
    path: "/usage/keys",
    summary:
      "The use of each key, team or person in the last 31 days (UTC): the latest day, and what counts towards budgets",
    query: z.strictObject({ by: z.enum(holderParts).default("key") }),
    answer: listOf(z.array(keyUse)),
    async run({ query: { by } }, { usage, clock }) {
      const { from, to } = daysAsked({ days: 31 }, clock.wall());
      const { rows } = await usage.read({ from, to });
      const data = [...Map.groupBy(rows, (row) => row[by === "key" ? "keyId" : by])].flatMap(([key, own]) => {
        if (key === null) return [];
        const today = totalOf(own.filter(({ day: each }) => each === to));
        const month = totalOf(own.filter(({ day: each }) => each.startsWith(to.slice(0, 7))));
        return {
          key,
          last_day: own.at(-1)?.day ?? to,
          tokens_of_day: today.tokens,
          tokens_of_month: month.tokens,
          cost_of_day: today.cost,
          cost_of_month: month.cost,
        };
      });
      return { object: "list" as const, data };
    },
  }),
};

export function showUsage(row: UsageRow): z.output<typeof shownUsage> {
  return {
    day: row.day,
    key: row.keyId || null,
    team: row.team,
    person: row.person,
    kind: row.kind,
    machine: row.machine,
    user: row.endUser?.split(":")[1] ?? null,
    model: row.model,
    requests: row.requests,
    failed: row.failed,
    prompt_tokens: row.promptTokens,
    completion_tokens: row.completionTokens,
    answered: row.answered,
    first_token_ms: row.firstTokenMs,
    duration_ms: row.durationMs,
    cost: row.cost,
  };
}

function totalOf(rows: readonly UsageRow[]) {
  const { promptTokens, completionTokens, cost: costs } = rows.reduce(addUsage<UsageCounts>, noUsage);
  return { tokens: promptTokens + completionTokens, cost: costs };
}

const defaultDays = 30;

/** Returns the first and the last day of the requested range, both included. The default is the last 30 days. */
export function usageDays(
  asked: { readonly from?: string | undefined; readonly to?: string | undefined },
  nowMs: number,
): Days {
  const { count, ...days } = daysAsked({ ...asked, days: defaultDays }, nowMs);
  if (count < 1) throw wrongFrom("it is after the last day");
  if (count > usageKeptDays)
    throw wrongFrom(`there are more than ${usageKeptDays} days (usageKeptDays) to the last one`);
  return days;
}

function wrongFrom(reason: string): Fault {
  return new Fault("invalid_value", { message: `Invalid value for 'from': ${reason}.`, param: "from" });
}
