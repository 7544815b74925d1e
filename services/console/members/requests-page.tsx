import type { OwnRequest } from "#shared/admin/member-operations.ts";
import { to } from "../address.ts";
import { RecordList } from "../pages/record-page.tsx";
import { Outcome } from "../pages/request-table.tsx";
import { Answered, Facts, Page } from "../parts.tsx";
import { msText, numberText } from "../quantity.ts";
import { Name, None, orDash, Time } from "../values.tsx";
import { money } from "./budgets.tsx";
import { useOwn } from "./member-api.ts";

export function OwnRequests({ rest: [id] }: { readonly rest: readonly string[] }) {
  return id === undefined ? <RequestList /> : <OneRequest key={id} id={id} />;
}

const modelOf = ({ model }: OwnRequest) => (model === null ? <None /> : <Name>{model}</Name>);
const linkTo = ({ id, at }: OwnRequest) => (
  <a href={to(["requests", id])}>
    <Time at={at} />
  </a>
);

function RequestList() {
  const requests = useOwn("GET /requests", { query: { limit: 1_000 } });
  const keys = useOwn("GET /keys", {}).answer?.data ?? [];
  const keyOf = ({ key }: OwnRequest): string => keys.find(({ id }) => id === key)?.name ?? key;
  return (
    <RecordList
      title="Requests"
      about="The latest requests of your keys, without any text of prompts and answers."
      of={requests}
      keyOf={({ id }) => id}
      empty="No request of your keys has ended lately."
      columns={[
        ["arrived", linkTo, "", ({ at }) => at],
        ["model", modelOf, "", ({ model }) => model],
        ["outcome", (each) => <Outcome request={each} />, "", ({ code }) => code],
        ["key", (each) => <bdi>{keyOf(each)}</bdi>, "wide", keyOf],
        ["first token", (each) => orDash(each.first_token_ms, msText), "right wide", (each) => each.first_token_ms],
        ["total", (each) => msText(each.total_ms), "right", (each) => each.total_ms],
        ["prompt", (each) => numberText(each.prompt_tokens), "right wide", (each) => each.prompt_tokens],
        ["answer", (each) => numberText(each.completion_tokens), "right", (each) => each.completion_tokens],
      ]}
    />
  );
}

function OneRequest({ id }: { readonly id: string }) {
  const request = useOwn("GET /requests/{id}", { params: { id } });
  return (
    <Page title="Request" about={<Name>{id}</Name>}>
      <Answered of={request} waiting="Loading the request…">
        {(shown) => (
          <Facts
            facts={[
              ["Arrived", <Time at={shown.at} />],
              ["Outcome", <Outcome request={shown} />],
              ["Limit", shown.limit],
              ["API", <Name>{shown.path}</Name>],
              ["Model", modelOf(shown)],
              ["Answered by", shown.answered_by && <Name>{shown.answered_by}</Name>],
              ["First token", orDash(shown.first_token_ms, msText)],
              ["Total", msText(shown.total_ms)],
              ["Prompt tokens", numberText(shown.prompt_tokens)],
              ["Answer tokens", numberText(shown.completion_tokens)],
              ["Cost", shown.cost == null ? null : money(shown.cost)],
            ]}
          />
        )}
      </Answered>
    </Page>
  );
}
