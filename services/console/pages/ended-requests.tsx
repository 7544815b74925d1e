import { useEffect, useState } from "preact/hooks";
import type { AnswerTo } from "#shared/admin/admin-call.ts";
import { faultAdvice } from "#shared/requests/fault-advice.ts";
import type { ShownRequest } from "#shared/requests/shown-request.ts";
import { query, setQuery } from "../address.ts";
import { type ApiFault, faultOf, read, useAnswer } from "../admin-api.ts";
import { csvText } from "../csv.ts";
import { Button, Filters, QueryChoice, TextField } from "../forms.tsx";
import { ended } from "../live.ts";
import { Answered, FaultNotice, Notice, Section } from "../parts.tsx";
import { localTime, numberText } from "../quantity.ts";
import { endedAtMs, isWanted, queryOf, type RequestFilter, requestFilters } from "../request-filter.ts";
import type { KeyNames } from "../values.tsx";
import { RequestTable } from "./request-table.tsx";

const outcomes = [["", "all"], "ok", "failed", ...Object.keys(faultAdvice).toSorted()] as const;
const apis = [
  ["", "all"],
  "chat/completions",
  "responses",
  "messages",
  ["v1/completions", "completions"],
  "embeddings",
  "rerank",
  ["/api/", "Ollama's"],
  "audio",
  "images",
] as const;

const pageLength = 100;

/** The requests that ended, those that match the filters of the address. New ones appear as they end, until one pauses. */
export function Ended({ names }: { readonly names: KeyNames }) {
  const all = requestFilters.map((name) => [name, query.value.get(name) ?? undefined]);
  const given: RequestFilter = Object.fromEntries(all);
  const asked = { ...queryOf(given), limit: pageLength };
  const found = useAnswer("GET /requests", { query: asked });
  const { older, failure, more } = useOlder(asked);
  /** Requests that ended later are counted only. */
  const [pausedAtMs, setPausedAt] = useState(Infinity);
  const pages = found.answer === undefined ? [] : [found.answer, ...older];
  const kept = pages.flatMap(({ data }) => data);
  const known = new Set(kept.map(({ id }) => id));
  const live = ended.value.filter((each) => !known.has(each.id) && isWanted(each, given, names.get(each.key)));
  const rows = [...live, ...kept];
  const shown = rows.filter((each) => endedAtMs(each) <= pausedAtMs);
  const unread = pages.reduce((sum, each) => sum + each.unread, 0);
  const pause = (): void => setPausedAt(rows[0] === undefined ? Date.now() : endedAtMs(rows[0]));
  return (
    <Section
      title="Ended"
      aside={
        <div class="actions">
          {pausedAtMs === Infinity ? (
            <Button text="Pause" onDo={pause} />
          ) : (
            <Button text={`Go on: ${numberText(rows.length - shown.length)} new`} onDo={() => setPausedAt(Infinity)} />
          )}
          <Button text="CSV" label="Save what is shown as CSV" onDo={() => saveCsv(shown, names)} />
        </div>
      }
    >
      <Filters label="Filters of ended requests">
        <QueryChoice name="outcome" label="Outcome" value={given.outcome ?? ""} options={outcomes} />
        <Filter name="model" label="Model, or a part" />
        <Filter name="machine" label="Machine" />
        <Filter name="key" label="Key" />
        <QueryChoice name="api" label="API" value={given.api ?? ""} options={apis} />
        <Filter name="longer" label="Longer than, in s" type="number" />
        <Filter name="since" label="Since" type="datetime-local" />
        <Filter name="until" label="Until" type="datetime-local" />
      </Filters>
      {unread > 0 && <Notice tone="warn">{unread} records of another version of Trunkline are missing here.</Notice>}
      <Answered of={found} waiting="Loading the requests…">
        {() => <RequestTable caption="Ended requests" rows={shown} empty={emptyText(pages.at(-1))} />}
      </Answered>
      <FaultNotice fault={failure} />
      <Further of={pages.at(-1)} onMore={more} />
    </Section>
  );
}

/** Returns the pages behind the first one, as far as they were asked for. Another question begins anew. */
function useOlder(asked: ListQuery) {
  const question = JSON.stringify(asked);
  const [kept, setRead] = useState<OlderPages>({ question, pages: [] });
  const { pages, failure }: Omit<OlderPages, "question"> = kept.question === question ? kept : { pages: [] };
  const more = (before: string): Promise<void> =>
    read("GET /requests", { query: { ...asked, before } }).then(
      (page) => setRead({ question, pages: [...pages, page] }),
      (error: unknown) => setRead({ question, pages, failure: faultOf(error) }),
    );
  return { older: pages, failure, more };
}

type ListQuery = ReturnType<typeof queryOf> & { readonly limit: number };

interface OlderPages {
  readonly question: string;
  readonly pages: readonly AnswerTo<"GET /requests">[];
  readonly failure?: ApiFault;
}

function emptyText(page: AnswerTo<"GET /requests"> | undefined): string {
  if (page?.next) return "No request so far matches.";
  return "No request matches. Records are kept for 7 days unless TRUNKLINE_REQUESTS_DAYS says otherwise.";
}

interface FilterProps {
  readonly name: (typeof requestFilters)[number];
  readonly label: string;
  readonly type?: "datetime-local" | "number";
}

/** A filter takes effect when it is left or entered, so that no half of a name is searched for. */
function Filter({ name, label, type }: FilterProps) {
  const kept = query.value.get(name) ?? "";
  const [text, setText] = useState(kept);
  useEffect(() => setText(kept), [kept]);
  const take = (): void => setQuery(name, text.trim());
  return <TextField label={label} type={type ?? "search"} value={text} onText={setText} onTaken={take} />;
}

interface FurtherProps {
  readonly of: AnswerTo<"GET /requests"> | undefined;
  readonly onMore: (before: string) => unknown;
}

/** The way to older requests. A search that ended before it had found enough says how far it has looked. */
function Further({ of: page, onMore }: FurtherProps) {
  const { next = null, data = [], looked_until: until } = page ?? {};
  if (next === null) return null;
  const isShort = data.length < pageLength && until;
  return (
    <div class="actions">
      {isShort && (
        <span class="quiet" role="status">
          Looked back to <time dateTime={until}>{localTime(until)}</time>; {data.length === 0 ? "nothing" : "no"} more
          yet.
        </span>
      )}
      <Button text={isShort ? "Go on" : "Show older ones"} onDo={() => onMore(next)} />
    </div>
  );
}

const heads = ["id", "ended", "arrived", "key", "key_name", "model", "machine", "path", "streamed", "status", "code"];
const figures = ["first_token_ms", "total_ms", "prompt_tokens", "completion_tokens", "tokens_per_second"] as const;

function saveCsv(rows: readonly ShownRequest[], names: KeyNames): void {
  const lines = rows.map((row) => [
    row.id,
    new Date(endedAtMs(row)).toISOString(),
    row.at,
    row.key,
    names.get(row.key) ?? "",
    row.model,
    row.machine,
    row.path,
    String(row.streamed),
    row.status,
    row.code,
    ...figures.map((figure) => row[figure]),
  ]);
  const url = URL.createObjectURL(new Blob([csvText([...heads, ...figures], lines)], { type: "text/csv" }));
  Object.assign(document.createElement("a"), { href: url, download: "requests.csv" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
