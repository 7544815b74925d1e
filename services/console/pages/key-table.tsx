import { limitsText } from "#shared/admin/key-terms.ts";
import type { ShownKey } from "#shared/records/shown-key.ts";
import { to } from "../address.ts";
import { shortNumber } from "../quantity.ts";
import { type Column, Table, type TableProps } from "../table.tsx";
import { Expiry, KeyState, Name, Names, None, PersonLink, TeamLink, usePeople } from "../values.tsx";
import { budgetColumns, LastUsed, useUses } from "./budget-use.tsx";

type KeyTableProps = Omit<TableProps<ShownKey>, "columns" | "keyOf"> & {
  /** A column that is left out, since all these keys have the same there. */
  readonly without?: "team" | "person";
};

/** A table of keys. */
export function KeyTable({ without, ...table }: KeyTableProps) {
  const uses = useUses("key");
  const people = usePeople();
  const hasSome = (part: "team" | "person"): boolean => part !== without && table.rows.some((key) => key[part]);
  const columns: readonly (Column<ShownKey> | false)[] = [
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
    hasSome("team") && ["team", ({ team }) => team && <TeamLink name={team} />, "", ({ team }) => team ?? null],
    hasSome("person") && [
      "person",
      ({ person }) => person && <PersonLink id={person} name={people.get(person)} />,
      "",
      ({ person = "" }) => people.get(person) ?? null,
    ],
    [
      "last used",
      ({ id, created_at: createdAt }) => <LastUsed id={id} uses={uses} createdAt={createdAt} />,
      "",
      ({ id }) => uses?.get(id)?.last_day ?? null,
    ],
    ...budgetColumns(table.rows, ({ id }) => id, uses),
    ["expires", (key) => <Expiry at={key.expires_at} />, "", (key) => key.expires_at],
    [
      "may call",
      ({ kind, scopes }) => (kind === "model" ? <Names of={scopes} /> : <None text={`no models: ${kind} key`} />),
      "wide",
      ({ kind, scopes }) => (kind === "model" ? scopes.join(" ") : `${kind} key`),
    ],
    ["limits", (key) => <LimitsText of={key} />, "wide"],
    ["id", ({ id }) => <Name>{id}</Name>, "wide", ({ id }) => id],
  ];
  return <Table {...table} columns={columns.filter((each) => each !== false)} keyOf={({ id }) => id} />;
}

/** The limits of a key, a team or a person in short, without the budgets, which have columns of their own. */
export function LimitsText({ of }: { readonly of: Parameters<typeof limitsText>[0] }) {
  return <>{limitsText({ ...of, budget: null, spend: null }, shortNumber) || <None text="none" />}</>;
}
