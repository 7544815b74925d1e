import { useState } from "preact/hooks";
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
import { Expiry, KeyState, Name, Names, None } from "../values.tsx";
import { ChosenKeys } from "./chosen-keys.tsx";
import { IssueDialog } from "./issue-key.tsx";
import { OneKey } from "./key-page.tsx";
import { BudgetUsed, type KeyUses, LastUsed, usedOf, useKeyUses } from "./key-use.tsx";

export function Keys({ rest: [id] }: { readonly rest: readonly string[] }) {
  return id === undefined ? <KeyList /> : <OneKey key={id} id={id} />;
}

const columnsOf = (uses: KeyUses): readonly Column<ShownKey>[] => [
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
  ["last used", (key) => <LastUsed shown={key} uses={uses} />, "", ({ id }) => uses?.get(id)?.last_day ?? null],
  [
    "budget",
    (key) => <BudgetUsed shown={key} uses={uses} />,
    "",
    (key) => (key.budget === null ? null : usedOf(key, uses) / key.budget.tokens),
  ],
  ["expires", (key) => <Expiry at={key.expires_at} />, "", (key) => key.expires_at],
  ["kind", ({ kind }) => (kind === "model" ? "models" : kind), "wide", ({ kind }) => kind],
  [
    "may call",
    ({ kind, scopes }) => (kind === "model" ? <Names of={scopes} /> : <None text="no models" />),
    "wide",
    ({ scopes }) => scopes.join(" "),
  ],
  ["limits", (key) => limitsText({ ...key, budget: null }, shortNumber) || <None text="none" />, "wide"],
  [
    "machines",
    ({ machines }) => machines?.join(", ") ?? <None text="any" />,
    "wide",
    ({ machines }) => machines?.join(" ") ?? null,
  ],
  ["id", ({ id }) => <Name>{id}</Name>, "wide", ({ id }) => id],
];

const states = ["valid", "disabled", "expired", "revoked"] as const;

const issuing = (close: () => void) => <IssueDialog onClose={close} />;

function KeyList() {
  const state = query.value.get("state") ?? "valid";
  const asked = states.find((each) => each === state);
  const { answer, fault } = useAnswer("GET /keys", { query: { limit: 1_000, state: asked } });
  const uses = useKeyUses();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
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
        columns={columnsOf(uses)}
        rows={answer?.data.toReversed() ?? []}
        keyOf={({ id }) => id}
        empty={answer === undefined ? "Loading the keys…" : `No key is ${state === "all" ? "here" : state}.`}
        filters={<QueryChoice name="state" label="State" value={state} options={[...states, "all"]} />}
        choice={mayChangeKeys() ? { chosen, onChoose: setChosen, nameOf: ({ name }) => name } : undefined}
      />
      <ChosenKeys keys={answer?.data.filter(({ id }) => chosen.has(id)) ?? []} onLeave={() => setChosen(new Set())} />
      {answer?.has_more === true && (
        <p class="quiet">
          These are the first 1,000 keys. <code>trunkline keys</code> lists all of them.
        </p>
      )}
    </Page>
  );
}
