import { limitsText } from "#shared/admin/key-terms.ts";
import type { ShownKey } from "#shared/records/shown-key.ts";
import { query, setQuery, to } from "../address.ts";
import { useAnswer } from "../admin-api.ts";
import { Choice, FindField, QueryButton } from "../forms.tsx";
import { Badge, type Column, FaultNotice, Name, Page, Table, Time, UnreadNotice } from "../parts.tsx";
import { shortNumber } from "../quantity.ts";
import { mayChangeKeys } from "../session.ts";
import { IssueDialog } from "./issue-key.tsx";
import { keyTones } from "./key-tones.ts";
import { OneKey } from "./key-page.tsx";

export function Keys({ rest: [id] }: { readonly rest: readonly string[] }) {
  return id === undefined ? <KeyList /> : <OneKey key={id} id={id} />;
}

const columns: readonly Column<ShownKey>[] = [
  {
    name: "name",
    cell: ({ id, name }) => (
      <a href={to(["keys", id])}>
        <bdi>{name}</bdi>
      </a>
    ),
  },
  { name: "state", cell: ({ state }) => <Badge tone={keyTones[state]}>{state}</Badge> },
  { name: "kind", cell: ({ kind }) => (kind === "model" ? "models" : kind) },
  {
    name: "may call",
    wide: true,
    cell: ({ kind, scopes }) =>
      kind === "model" ? (
        scopes.map((scope) => (
          <>
            <Name key={scope}>{scope}</Name>{" "}
          </>
        ))
      ) : (
        <span class="quiet">no models</span>
      ),
  },
  { name: "limits", wide: true, cell: (key) => limitsText(key, shortNumber) || <span class="quiet">none</span> },
  { name: "machines", wide: true, cell: ({ machines }) => machines?.join(", ") ?? <span class="quiet">any</span> },
  { name: "expires", cell: ({ expires_at: at }) => <Time at={at} /> },
  { name: "id", wide: true, cell: ({ id }) => <Name>{id}</Name> },
];

const states = ["valid", "disabled", "expired", "revoked"] as const;

function KeyList() {
  const state = query.value.get("state") ?? "valid";
  const words = (query.value.get("find") ?? "").toLowerCase();
  const chosen = states.find((each) => each === state);
  const { answer, fault } = useAnswer("GET /keys", { query: { limit: 1_000, state: chosen } });
  const found = answer?.data.filter(({ id, name }) => `${id} ${name}`.toLowerCase().includes(words)).toReversed();
  return (
    <Page
      title="Keys"
      about="Keys call models; admin and viewer keys use this console and the admin API."
      actions={
        mayChangeKeys() && (
          <QueryButton name="issue" value="new" isPrimary>
            Issue a key
          </QueryButton>
        )
      }
    >
      <form class="row" onSubmit={(event) => event.preventDefault()} aria-label="Filters">
        <FindField placeholder="a name or an id" />
        <Choice
          label="State"
          value={state}
          onChoose={(value) => setQuery("state", value)}
          options={[...states, "all"].map((each) => [each, each] as const)}
        />
      </form>
      <FaultNotice fault={fault} />
      <UnreadNotice unread={answer?.unread} />
      {found === undefined ? (
        fault === undefined && <p class="quiet">Keys are listed…</p>
      ) : (
        <Table
          caption="Keys"
          columns={columns}
          rows={found}
          keyOf={({ id }) => id}
          empty="No key is found. Issue one for whoever calls the models."
        />
      )}
      {answer?.has_more && (
        <p class="quiet">
          These are the first 1,000 keys. <code>trunkline keys</code> lists all of them.
        </p>
      )}
      {query.value.get("issue") === "new" && mayChangeKeys() && (
        <IssueDialog onClose={() => setQuery("issue", undefined)} />
      )}
    </Page>
  );
}
