import { limitsText } from "#shared/admin/key-terms.ts";
import type { ShownKey } from "#shared/records/shown-key.ts";
import { query, to } from "../address.ts";
import { useAnswer } from "../admin-api.ts";
import { WindowButton } from "../dialogs.tsx";
import { QueryChoice } from "../forms.tsx";
import { FaultNotice, Page, UnreadNotice } from "../parts.tsx";
import { shortNumber } from "../quantity.ts";
import { mayChangeKeys } from "../session.ts";
import { type Column, Table } from "../table.tsx";
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
  [
    "may call",
    ({ kind, scopes }) => (kind === "model" ? <Names of={scopes} /> : <None text="no models" />),
    "wide",
    ({ scopes }) => scopes.join(" "),
  ],
  ["limits", (key) => limitsText(key, shortNumber) || <None text="none" />, "wide"],
  [
    "machines",
    ({ machines }) => machines?.join(", ") ?? <None text="any" />,
    "wide",
    ({ machines }) => machines?.join(" ") ?? null,
  ],
  ["expires", (key) => <Time at={key.expires_at} />, "", (key) => key.expires_at],
  ["id", ({ id }) => <Name>{id}</Name>, "wide", ({ id }) => id],
];

const states = ["valid", "disabled", "expired", "revoked"] as const;

const issuing = (close: () => void) => <IssueDialog onClose={close} />;

function KeyList() {
  const state = query.value.get("state") ?? "valid";
  const chosen = states.find((each) => each === state);
  const { answer, fault } = useAnswer("GET /keys", { query: { limit: 1_000, state: chosen } });
  return (
    <Page
      title="Keys"
      about="Keys call models; admin and viewer keys use this console and the admin API."
      actions={
        mayChangeKeys() && <WindowButton text="Issue a key" name="issue" value="new" isPrimary window={issuing} />
      }
    >
      <FaultNotice fault={fault} />
      <UnreadNotice unread={answer?.unread} />
      <Table
        caption="Keys"
        columns={columns}
        rows={answer?.data.toReversed() ?? []}
        keyOf={({ id }) => id}
        empty={answer === undefined ? "Loading the keys…" : `No key is ${state === "all" ? "here" : state}.`}
        filters={<QueryChoice name="state" label="State" value={state} options={[...states, "all"]} />}
      />
      {answer?.has_more === true && (
        <p class="quiet">
          These are the first 1,000 keys. <code>trunkline keys</code> lists all of them.
        </p>
      )}
    </Page>
  );
}
