import { useEffect, useState } from "preact/hooks";
import type { AnswerTo, SentTo } from "#shared/admin/admin-call.ts";
import { stepsOf } from "#shared/requests/request-steps.ts";
import type { ShownRequest } from "#shared/requests/shown-request.ts";
import { query, setQuery } from "../address.ts";
import { type ApiFault, faultOf, read, useAnswer } from "../admin-api.ts";
import { ended } from "../live.ts";
import { Button, Filters, QueryChoice, TextField } from "../forms.tsx";
import { Answered, CopyText, type Fact, Facts, FaultNotice, Notice, Page, Section } from "../parts.tsx";
import { msText, numberText } from "../quantity.ts";
import { KeyName, MachineLink, Name, Time, useKeyNames } from "../values.tsx";
import { Outcome, RequestTable } from "./request-table.tsx";

type RequestFilter = NonNullable<SentTo<"GET /requests">["query"]>;
type RequestListing = AnswerTo<"GET /requests">;

export function Requests({ rest: [id] }: { readonly rest: readonly string[] }) {
  return id === undefined ? <RequestList /> : <OneRequest id={id} />;
}

/** The filters, which stand in the address. */
const filters = ["failed", "key", "model", "machine", "since", "until"] as const;
type Given = Readonly<Record<string, string | undefined>>;
const outcomes = [
  ["", "all"],
  ["true", "failed"],
  ["false", "not failed"],
] as const;

function RequestList() {
  const given = Object.fromEntries(filters.map((name) => [name, query.value.get(name) ?? undefined]));
  const { since, until, ...rest } = given;
  const asked = { ...rest, since: isoTime(since), until: isoTime(until), limit: 100 };
  return (
    <Page
      title="Requests"
      about="Every request and what became of it, without the text of prompts or answers. New ones appear as they end."
    >
      <Filters label="Filters">
        <QueryChoice name="failed" label="Outcome" value={given["failed"] ?? ""} options={outcomes} />
        <Filter name="model" label="Model" />
        <Filter name="machine" label="Machine" />
        <Filter name="key" label="Key" />
        <Filter name="since" label="Since" type="datetime-local" />
        <Filter name="until" label="Until" type="datetime-local" />
      </Filters>
      <Found key={JSON.stringify(asked)} asked={asked} given={given} />
    </Page>
  );
}

interface FilterProps {
  readonly name: (typeof filters)[number];
  readonly label: string;
  readonly type?: "datetime-local";
}

/** A filter takes effect when it is left or entered, so that no half of a name is searched for. */
function Filter({ name, label, type }: FilterProps) {
  const kept = query.value.get(name) ?? "";
  const [text, setText] = useState(kept);
  useEffect(() => setText(kept), [kept]);
  const take = (): void => setQuery(name, text.trim());
  return <TextField label={label} type={type ?? "search"} value={text} onText={setText} onTaken={take} />;
}

function Found({ asked, given }: { readonly asked: RequestFilter; readonly given: Given }) {
  const found = useAnswer("GET /requests", { query: asked });
  const names = useKeyNames();
  const [older, setOlder] = useState<readonly RequestListing[]>([]);
  const [failure, setFailure] = useState<ApiFault>();
  const more = (before: string): Promise<void> =>
    read("GET /requests", { query: { ...asked, before } }).then(
      (page) => setOlder([...older, page]),
      (error: unknown) => setFailure(faultOf(error)),
    );
  return (
    <Answered of={found} waiting="Loading the requests…">
      {(first) => {
        const pages = [first, ...older];
        const kept = pages.flatMap(({ data }) => data);
        const known = new Set(kept.map(({ id }) => id));
        const isNew = (each: ShownRequest): boolean => !known.has(each.id) && isWanted(each, given, names);
        const live = given["until"] === undefined ? ended.value.filter(isNew) : [];
        const next = pages.at(-1)?.next ?? null;
        const unread = pages.reduce((sum, each) => sum + each.unread, 0);
        return (
          <section>
            {unread > 0 && (
              <Notice tone="warn">{unread} records of another version of Trunkline are missing here.</Notice>
            )}
            <RequestTable
              caption="Requests"
              rows={[...live, ...kept]}
              empty="No request matches. Records are kept for 7 days unless TRUNKLINE_REQUESTS_DAYS says otherwise."
            />
            <FaultNotice fault={failure} />
            {next !== null && (
              <div class="actions">
                <Button text="Show older ones" onDo={() => more(next)} />
              </div>
            )}
          </section>
        );
      }}
    </Answered>
  );
}

/** Returns true for a request that just ended and that the filters let through. */
function isWanted(request: ShownRequest, given: Given, names: ReturnType<typeof useKeyNames>): boolean {
  const { failed, key, model, machine, since } = given;
  return (
    (failed === undefined || failed === String(request.code !== "ok")) &&
    (key === undefined || key === request.key || key === names.get(request.key)) &&
    (model === undefined || model === request.model || model === request.answered_by) &&
    (machine === undefined || request.tried.some((each) => each.machine === machine)) &&
    (since === undefined || request.at >= (isoTime(since) ?? ""))
  );
}

/** Returns the UTC time of a time in the viewer's zone. Undefined for a text that is none. */
function isoTime(local: string | undefined): string | undefined {
  const time = new Date(local ?? "");
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}

function OneRequest({ id }: { readonly id: string }) {
  const found = useAnswer("GET /requests/{id}", { params: { id } });
  const { answer: request } = found;
  return (
    <Page
      title={request?.model ?? "Request"}
      about={request === undefined ? <Name>{id}</Name> : [<Time at={request.at} />, " · ", <Name>{id}</Name>]}
    >
      <Answered of={found} waiting="Loading the request…">
        {(shown) => <Way request={shown} />}
      </Answered>
    </Page>
  );
}

function Way({ request }: { readonly request: ShownRequest }) {
  const { advice, limit, code, cached_tokens: cached, tokens_per_second: speed } = request;
  const names = useKeyNames();
  const facts: readonly Fact[] = [
    ["Outcome", <Outcome request={request} />],
    ["Key", <KeyName id={request.key} name={names.get(request.key)} />],
    ["Machine", request.machine && <MachineLink name={request.machine} />],
    ["Answered by", request.answered_by && <Name>{request.answered_by}</Name>],
    ["API", `${request.path}${request.streamed ? ", streamed" : ""}`],
    ["Client", <bdi>{`${request.user_agent ?? "unnamed"}, ${request.address}`}</bdi>],
    ["Prompt", tokensText(request.prompt_tokens, cached === null ? "" : `, ${numberText(cached)} cached`)],
    ["Answer", tokensText(request.completion_tokens, speed === null ? "" : `, ${speed} a second`)],
  ];
  return (
    <>
      {code !== "ok" && (
        <Notice tone={request.status >= 500 ? "bad" : "warn"}>
          The request ended with <strong>{code}</strong>
          {limit !== null && ` (limit: ${limit})`}. {advice ?? ""}
        </Notice>
      )}
      <Section title="What happened">
        <ol class="way">
          {stepsOf(request).map(({ atMs, text, aside }) => (
            <li key={`${atMs} ${text}`}>
              <span class="figure">{msText(atMs)}</span>
              <span>
                <bdi>{text}</bdi>
                {aside.length > 0 && (
                  <small>
                    <bdi>{aside.join("; ")}</bdi>
                  </small>
                )}
              </span>
            </li>
          ))}
        </ol>
      </Section>
      <Section title="Facts">
        <Facts facts={facts} />
      </Section>
      <CopyText label="The same on the command line" text={`trunkline requests show ${request.id}`} />
    </>
  );
}

function tokensText(tokens: number, more: string): string {
  return `${numberText(tokens)} tokens${more}`;
}
