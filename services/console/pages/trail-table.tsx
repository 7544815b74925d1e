import type { AnswerTo } from "#shared/admin/admin-call.ts";
import { to } from "../address.ts";
import { type Column, MachineLink, ModelLink, Name, Table, Time } from "../parts.tsx";
import { actionWords, detailWords } from "../trail-words.ts";

export type TrailEntry = AnswerTo<"GET /log">["data"][number];

const columns: readonly Column<TrailEntry>[] = [
  { name: "when", cell: ({ at }) => <Time at={at} /> },
  { name: "who", cell: ({ by }) => <bdi>{by}</bdi> },
  { name: "did what", cell: ({ action }) => actionWords[action] ?? action },
  { name: "to what", cell: (entry) => <Subject entry={entry} /> },
  { name: "detail", wide: true, cell: ({ detail }) => <bdi class="quiet">{detailWords(detail)}</bdi> },
];

/** A table of changes, the latest first. */
export function TrailTable({
  caption,
  entries,
}: {
  readonly caption: string;
  readonly entries: readonly TrailEntry[];
}) {
  const keyed = entries.map((entry, place) => ({ entry, place }));
  const rows = columns.map((column) => ({ ...column, cell: (row: (typeof keyed)[number]) => column.cell(row.entry) }));
  return (
    <Table
      caption={caption}
      columns={rows}
      rows={keyed}
      keyOf={({ entry, place }) => `${entry.at} ${entries.length - place}`}
      empty="No change is found."
    />
  );
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
  return key === null ? (
    <Name>{name}</Name>
  ) : (
    <>
      <a href={to(["keys", key])}>
        <bdi>{name}</bdi>
      </a>{" "}
      <small>
        <Name>{key}</Name>
      </small>
    </>
  );
}
