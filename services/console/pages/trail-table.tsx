import type { AnswerTo } from "#shared/admin/admin-call.ts";
import { to } from "../address.ts";
import { type Column, Table, type TableProps } from "../parts.tsx";
import { actionWords, detailWords } from "../trail-words.ts";
import { KeyName, MachineLink, ModelLink, Name, Time } from "../values.tsx";

export type TrailEntry = AnswerTo<"GET /log">["data"][number];

const columns: readonly Column<TrailEntry>[] = [
  ["when", ({ at }) => <Time at={at} />],
  ["who", ({ by }) => <bdi>{by}</bdi>],
  ["did what", ({ action }) => actionWords[action] ?? action],
  ["to what", (entry) => <Subject entry={entry} />],
  ["detail", ({ detail }) => <bdi class="quiet">{detailWords(detail)}</bdi>, "wide"],
];

/** A table of changes, the latest first. */
export function TrailTable({ caption, rows }: Pick<TableProps<TrailEntry>, "caption" | "rows">) {
  const keyOf = ({ at }: TrailEntry, place: number): string => `${at} ${rows.length - place}`;
  return <Table caption={caption} columns={columns} rows={rows} keyOf={keyOf} empty="No change is found." />;
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
