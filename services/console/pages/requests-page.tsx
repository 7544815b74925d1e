import type { AnswerTo } from "#shared/admin/admin-call.ts";
import { moneyText } from "#shared/money/money.ts";
import { stepsOf } from "#shared/requests/request-steps.ts";
import { useAnswer } from "../admin-api.ts";
import { currency } from "../currency.ts";
import { Answered, CopyText, type Fact, Facts, Notice, Page, Section } from "../parts.tsx";
import { msText, numberText } from "../quantity.ts";
import { mayChangeKeys } from "../session.ts";
import { KeyName, MachineLink, Name, Time, useKeyNames } from "../values.tsx";
import { Ended } from "./ended-requests.tsx";
import { RequestContent } from "./request-content.tsx";
import { Outcome } from "./request-table.tsx";
import { Running } from "./running-requests.tsx";

export function Requests({ rest: [id] }: { readonly rest: readonly string[] }) {
  return id === undefined ? <RequestList /> : <OneRequest id={id} />;
}

function RequestList() {
  const names = useKeyNames();
  return (
    <Page title="Requests" about="Every request and what became of it, without the text of prompts or answers.">
      <Running names={names} />
      <Ended names={names} />
    </Page>
  );
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

function Way({ request }: { readonly request: AnswerTo<"GET /requests/{id}"> }) {
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
    ["Cost", request.cost == null ? null : moneyText(request.cost, currency.value)],
    ...(request.trace == null ? [] : [["Trace", <TraceLink id={request.trace} />] as const]),
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
      {request.captured && mayChangeKeys() && <RequestContent id={request.id} />}
      <CopyText label="The same on the command line" text={`trunkline requests show ${request.id}`} />
    </>
  );
}

/** A link to a trace where the site says where people look at traces, and else its id. */
function TraceLink({ id }: { readonly id: string }) {
  const { answer: site } = useAnswer("GET /site/status", {});
  const url = site?.trace_url?.replaceAll("{trace}", id);
  if (url === undefined || !/^https?:\/\//.test(url)) return <Name>{id}</Name>;
  return (
    <a href={url} target="_blank" rel="noreferrer">
      {id}
    </a>
  );
}

function tokensText(tokens: number, more: string): string {
  return `${numberText(tokens)} tokens${more}`;
}
