import type { AnswerTo } from "#shared/admin/admin-call.ts";
import { to } from "../address.ts";
import { actionWords, detailWords } from "../trail-words.ts";
import { type Column, Table, type TableProps } from "../table.tsx";
import { KeyName, MachineLink, ModelLink, Name, Time } from "../values.tsx";

export type TrailEntry = AnswerTo<"GET /log">["data"][number];

const columns: readonly Column<TrailEntry>[] = [
  ["when", ({ at }) => <Time at={at} />, "", ({ at }) => Date.parse(at)],
  ["who", ({ by }) => <bdi>{by}</bdi>, "", ({ by }) => by],
  ["did what", ({ action }) => actionWords[action] ?? action, "", ({ action }) => actionWords[action] ?? action],
  ["to what", (entry) => <Subject entry={entry} />, "", subjectText],
  ["detail", ({ detail }) => <bdi class="quiet">{detailWords(detail)}</bdi>, "wide"],
];

/** A table of changes, the latest first. */
export function TrailTable({ rows, ...table }: Pick<TableProps<TrailEntry>, "caption" | "rows" | "name">) {
  const keyOf = ({ at }: TrailEntry, place: number): string => `${at} ${rows.length - place}`;
  return <Table {...table} columns={columns} rows={rows} keyOf={keyOf} empty="No change is found." />;
}

function subjectText({ key, machine, route, model, name }: TrailEntry): string {
  return [name, machine, route, model, key].filter((each) => each !== null).join(" ");
}

function Subject({ entry }: { readonly entry: TrailEntry }) {
  const { key, machine, route, model, name } = entry;
  if (machine !== null) return <MachineLink name={machine} />;
  if (route !== null)
    return (
      <a href={to(["models", "routes"], { find: route })}>
        <Name>{route}</Name>
      </a>
    );
  if (model !== null) return <ModelLink id={model} />;
  return key === null ? <Name>{name}</Name> : <KeyName id={key} name={name} />;
}
