import type { AnswerTo } from "#shared/admin/admin-call.ts";
import { to } from "../address.ts";
import { useAnswer } from "../admin-api.ts";
import { Answered, Section } from "../parts.tsx";
import { actionWords, detailWords } from "../trail-words.ts";
import { type Column, Table, type TableProps } from "../table.tsx";
import {
  KeyName,
  MachineLink,
  ModelLink,
  Name,
  PersonLink,
  TeamLink,
  Time,
  useKeyNames,
  usePeople,
} from "../values.tsx";

export type TrailEntry = AnswerTo<"GET /log">["data"][number];

const when: Column<TrailEntry> = ["when", ({ at }) => <Time at={at} />, "", ({ at }) => Date.parse(at)];
const others: readonly Column<TrailEntry>[] = [
  ["did what", ({ action }) => actionWords[action] ?? action, "", ({ action }) => actionWords[action] ?? action],
  ["to what", (entry) => <Subject entry={entry} />, "", subjectText],
  ["detail", ({ detail }) => <bdi class="quiet">{detailWords(detail)}</bdi>, "wide"],
];

type TrailProps = Pick<TableProps<TrailEntry>, "caption" | "rows" | "name" | "filters" | "finds"> &
  Partial<Pick<TableProps<TrailEntry>, "empty">>;

/** A table of changes, the latest first. */
export function TrailTable({ rows, empty = "No change matches.", ...table }: TrailProps) {
  const names = useKeyNames();
  const keyOf = ({ at }: TrailEntry, place: number): string => `${at} ${rows.length - place}`;
  // The author is a person at a command line, or the key that was used.
  const keyOfAuthor = ({ by }: TrailEntry): string => /^admin (\w+)/.exec(by)?.[1] ?? "";
  const who: Column<TrailEntry> = [
    "who",
    (entry) => {
      const key = keyOfAuthor(entry);
      return key === "" ? <bdi>{entry.by}</bdi> : <KeyName id={key} name={names.get(key)} />;
    },
    "",
    (entry) => names.get(keyOfAuthor(entry)) ?? entry.by,
  ];
  return <Table {...table} columns={[when, who, ...others]} rows={rows} keyOf={keyOf} empty={empty} />;
}

const latestShown = 20;

interface TrailOfProps {
  /** The kind of object. */
  readonly object: "key" | "team" | "person";
  readonly name: string;
}

/** The latest changes of one object. */
export function TrailOf({ object, name }: TrailOfProps) {
  const trail = useAnswer("GET /log", { query: { [object === "key" ? "key" : "about"]: name, limit: 100 } });
  const title = `Trail of this ${object}`;
  return (
    <Section title={title}>
      <Answered of={trail}>
        {({ data }) => {
          const own = data.filter((entry) => entry[object] === name).slice(-latestShown);
          return <TrailTable name="trail" caption={title} rows={own.toReversed()} />;
        }}
      </Answered>
    </Section>
  );
}

function subjectText({ key, machine, route, model, price, name }: TrailEntry): string {
  return [name, machine, route, model, price, key].filter(Boolean).join(" ");
}

function Subject({ entry }: { readonly entry: TrailEntry }) {
  const people = usePeople();
  const { key, machine, route, model, price, team, person, name } = entry;
  if (machine !== null) return <MachineLink name={machine} />;
  if (route !== null)
    return (
      <a href={to(["models", "routes"], { find: route })}>
        <Name>{route}</Name>
      </a>
    );
  if (model !== null) return <ModelLink id={model} />;
  if (team) return <TeamLink name={team} />;
  if (person) return <PersonLink id={person} name={people.get(person)} />;
  if (price)
    return (
      <a href={to(["prices"], { find: price })}>
        <Name>{price}</Name>
      </a>
    );
  return key === null ? <Name>{name}</Name> : <KeyName id={key} name={name} />;
}
