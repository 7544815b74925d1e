import { useEffect, useState } from "preact/hooks";
import type { AnswerTo, SentTo } from "#shared/admin/admin-call.ts";
import { stepsOf } from "#shared/requests/request-steps.ts";
import type { ShownRequest } from "#shared/requests/shown-request.ts";
import { query, setQuery } from "../address.ts";
import { type ApiFault, faultOf, read, useAnswer } from "../admin-api.ts";
import { ended } from "../live.ts";
import { Choice, TextField } from "../forms.tsx";
import { CopyText, FaultNotice, Facts, MachineLink, Name, Notice, Page, Time, Waiting } from "../parts.tsx";
import { msText, numberText } from "../quantity.ts";
import { KeyName, useKeyNames } from "./key-name.tsx";
import { Outcome, RequestTable } from "./request-table.tsx";

type RequestFilter = NonNullable<SentTo<"GET /requests">["query"]>;
type RequestListing = AnswerTo<"GET /requests">;

export function Requests({ rest: [id] }: { readonly rest: readonly string[] }) {
  return id === undefined ? <RequestList /> : <OneRequest id={id} />;
}

/** The filters, which stand in the address. */
const filters = ["failed", "key", "model", "machine", "since", "until"] as const;

function RequestList() {
  const given = Object.fromEntries(filters.map((name) => [name, query.value.get(name) ?? undefined]));
  const { since, until, ...rest } = given;
  const asked = { ...rest, since: isoTime(since), until: isoTime(until), limit: 100 };
  return (
    <Page
      title="Requests"
      about="What happened to each request, without any text of prompts and answers. New ones appear as they end."
    >
      <form class="row" onSubmit={(event) => event.preventDefault()} aria-label="Filters">
        <Choice
          label="Outcome"
          value={given["failed"] ?? ""}
          onChoose={(value) => setQuery("failed", value)}
          options={[
            ["", "all"],
            ["true", "failed"],
            ["false", "not failed"],
          ]}
        />
        <Filter name="model" label="Model" />
        <Filter name="machine" label="Machine" />
        <Filter name="key" label="Key" />
        <Filter name="since" label="Since" type="datetime-local" />
        <Filter name="until" label="Until" type="datetime-local" />
      </form>
      <Found key={JSON.stringify(asked)} asked={asked} given={given} />
    </Page>
  );
}

/** A filter takes effect when it is left or entered, so that no half of a name is searched for. */
function Filter({
  name,
  label,
  type = "search",
}: {
  readonly name: (typeof filters)[number];
  readonly label: string;
  readonly type?: "search" | "datetime-local";
}) {
  const kept = query.value.get(name) ?? "";
  const [text, setText] = useState(kept);
  useEffect(() => setText(kept), [kept]);
  const take = (): void => setQuery(name, text.trim());
  return <TextField label={label} type={type} value={text} onText={setText} onTaken={take} />;
}

function Found({
  asked,
  given,
}: {
  readonly asked: RequestFilter;
  readonly given: Readonly<Record<string, string | undefined>>;
}) {
  const { answer, fault } = useAnswer("GET /requests", { query: asked });
  const names = useKeyNames();
  const [older, setOlder] = useState<readonly RequestListing[]>([]);
  const [failure, setFailure] = useState<ApiFault>();
  if (answer === undefined) return <Waiting fault={fault}>Requests are looked for…</Waiting>;
  const pages = [answer, ...older];
  const found = pages.flatMap(({ data }) => data);
  const known = new Set(found.map(({ id }) => id));
  const live =
    given["until"] === undefined
      ? ended.value.filter((each) => !known.has(each.id) && isWanted(each, given, names))
      : [];
  const next = pages.at(-1)?.next ?? null;
  const unread = pages.reduce((sum, each) => sum + each.unread, 0);
  const more = (): void => {
    read("GET /requests", { query: { ...asked, before: next ?? undefined } }).then(
      (page) => setOlder([...older, page]),
      (error: unknown) => setFailure(faultOf(error)),
    );
  };
  return (
    <section>
      {unread > 0 && <Notice tone="warn">{unread} records of another version of Trunkline are missing here.</Notice>}
      <RequestTable
        caption="Requests"
        rows={[...live, ...found]}
        empty="No request matches. Records are kept for 7 days unless TRUNKLINE_REQUESTS_DAYS says otherwise."
      />
      <FaultNotice fault={failure} />
      {next !== null && (
        <div class="actions">
          <button type="button" onClick={more}>
            Show older ones
          </button>
        </div>
      )}
    </section>
  );
}

/** Returns true for a request that just ended and that the filters let through. */
function isWanted(
  request: ShownRequest,
  given: Readonly<Record<string, string | undefined>>,
  names: ReturnType<typeof useKeyNames>,
): boolean {
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
  const { answer, fault } = useAnswer("GET /requests/{id}", { params: { id } });
  if (answer === undefined) {
    return (
      <Page title="Request" about={<Name>{id}</Name>}>
        <Waiting fault={fault}>Its record is looked for…</Waiting>
      </Page>
    );
  }
  return <RequestPage request={answer} />;
}

function RequestPage({ request }: { readonly request: ShownRequest }) {
  const { id, advice, limit, code } = request;
  const names = useKeyNames();
  return (
    <Page
      title={request.model ?? "Request"}
      about={
        <>
          <Time at={request.at} /> · <Name>{id}</Name>
        </>
      }
    >
      {code !== "ok" && (
        <Notice tone={request.status >= 500 ? "bad" : "warn"}>
          It ended with <strong>{code}</strong>
          {limit !== null && <> (limit: {limit})</>}. {advice ?? ""}
        </Notice>
      )}
      <section>
        <h2>Its way</h2>
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
      </section>
      <section>
        <h2>Facts</h2>
        <Facts
          facts={[
            ["Outcome", <Outcome request={request} />],
            ["Key", <KeyName id={request.key} names={names} />],
            ["Machine", request.machine && <MachineLink name={request.machine} />],
            ["Answered by", request.answered_by && <Name>{request.answered_by}</Name>],
            ["API", `${request.path}${request.streamed ? ", streamed" : ""}`],
            [
              "Client",
              <bdi>
                {request.user_agent ?? "unnamed"}, {request.address}
              </bdi>,
            ],
            [
              "Prompt",
              `${numberText(request.prompt_tokens)} tokens${request.cached_tokens === null ? "" : `, ${numberText(request.cached_tokens)} cached`}`,
            ],
            [
              "Answer",
              `${numberText(request.completion_tokens)} tokens${request.tokens_per_second === null ? "" : `, ${request.tokens_per_second} a second`}`,
            ],
          ]}
        />
      </section>
      <CopyText label="The same on the command line" text={`trunkline requests show ${id}`} />
    </Page>
  );
}
