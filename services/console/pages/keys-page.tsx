import { limitsText } from "#shared/admin/key-terms.ts";
import type { ShownKey } from "#shared/records/shown-key.ts";
import { query, to } from "../address.ts";
import { useAnswer } from "../admin-api.ts";
import { Filters, FindField, QueryChoice, WindowButton } from "../forms.tsx";
import { Answered, type Column, Page, Table, UnreadNotice } from "../parts.tsx";
import { shortNumber } from "../quantity.ts";
import { mayChangeKeys } from "../session.ts";
import { KeyState, Name, Names, None, Time } from "../values.tsx";
import { IssueDialog } from "./issue-key.tsx";
import { OneKey } from "./key-page.tsx";

export function Keys({ rest: [id] }: { readonly rest: readonly string[] }) {
  return id === undefined ? <KeyList /> : <OneKey key={id} id={id} />;
}

const columns: readonly Column<ShownKey>[] = [
  [
    "name",
    ({ id, name }) => (
      <a href={to(["keys", id])}>
        <bdi>{name}</bdi>
      </a>
    ),
    "",
    ({ name }) => name,
  ],
  ["state", ({ state }) => <KeyState state={state} />, "", ({ state }) => state],
  ["kind", ({ kind }) => (kind === "model" ? "models" : kind), "", ({ kind }) => kind],
  ["may call", ({ kind, scopes }) => (kind === "model" ? <Names of={scopes} /> : <None text="no models" />), "wide"],
  ["limits", (key) => limitsText(key, shortNumber) || <None text="none" />, "wide"],
  ["machines", ({ machines }) => machines?.join(", ") ?? <None text="any" />, "wide"],
  ["expires", (key) => <Time at={key.expires_at} />, "", (key) => key.expires_at],
  ["id", ({ id }) => <Name>{id}</Name>, "wide"],
];

const states = ["valid", "disabled", "expired", "revoked"] as const;

const issuing = (close: () => void) => <IssueDialog onClose={close} />;

function KeyList() {
  const state = query.value.get("state") ?? "valid";
  const words = (query.value.get("find") ?? "").toLowerCase();
  const chosen = states.find((each) => each === state);
  const keys = useAnswer("GET /keys", { query: { limit: 1_000, state: chosen } });
  const isFound = ({ id, name }: ShownKey): boolean => `${id} ${name}`.toLowerCase().includes(words);
  return (
    <Page
      title="Keys"
      about="Keys call models; admin and viewer keys use this console and the admin API."
      actions={
        mayChangeKeys() && <WindowButton text="Issue a key" name="issue" value="new" isPrimary window={issuing} />
      }
    >
      <Filters label="Filters">
        <FindField placeholder="a name or an id" />
        <QueryChoice name="state" label="State" value={state} options={[...states, "all"]} />
      </Filters>
      <Answered of={keys} waiting="Keys are listed…">
        {({ data, unread, has_more: hasMore }) => (
          <>
            <UnreadNotice unread={unread} />
            <Table
              caption="Keys"
              columns={columns}
              rows={data.filter(isFound).toReversed()}
              keyOf={({ id }) => id}
              empty="No key matches. Issue one for each client."
            />
            {hasMore && (
              <p class="quiet">
                These are the first 1,000 keys. <code>trunkline keys</code> lists all of them.
              </p>
            )}
          </>
        )}
      </Answered>
    </Page>
  );
}
