import { markersOf } from "#shared/requests/request-words.ts";
import type { ShownRequest } from "#shared/requests/shown-request.ts";
import { to } from "../address.ts";
import { endedAtMs } from "../request-filter.ts";
import { msText, numberText } from "../quantity.ts";
import { type Column, Table, type TableProps } from "../table.tsx";
import { Badge, Badges, KeyName, MachineLink, Name, None, orDash, Time, useKeyNames } from "../values.tsx";

const columns: readonly Column<ShownRequest>[] = [
  [
    "ended",
    ({ at, total_ms, id }) => (
      <a href={to(["requests", id])}>
        <Time at={new Date(endedAtMs({ at, total_ms })).toISOString()} />
      </a>
    ),
  ],
  ["arrived", ({ at }) => <Time at={at} />, "wide"],
  ["model", ({ model }) => (model === null ? <None /> : <Name>{model}</Name>)],
  [
    "machine",
    ({ machine, tried }) => {
      const name = machine ?? tried.at(-1)?.machine;
      return name === undefined ? <None /> : <MachineLink name={name} />;
    },
  ],
  [
    "outcome",
    (request) => (
      <>
        <Outcome request={request} /> <Marks words={markersOf(request.tried, request)} />
      </>
    ),
  ],
  ["first token", (request) => orDash(request.first_token_ms, msText), "right wide"],
  ["total", (request) => msText(request.total_ms), "right"],
  ["prompt", (request) => numberText(request.prompt_tokens), "right wide"],
  ["answer", (request) => numberText(request.completion_tokens), "right wide"],
  ["tokens/s", (request) => orDash(request.tokens_per_second, numberText), "right wide"],
];

export function RequestTable(table: Pick<TableProps<ShownRequest>, "caption" | "rows" | "empty">) {
  const names = useKeyNames();
  const keyColumn: Column<ShownRequest> = ["key", ({ key }) => <KeyName id={key} name={names.get(key)} />, "wide"];
  return <Table {...table} columns={[...columns, keyColumn]} keyOf={({ id }) => id} />;
}

/** The marks of a request. A phone hides a cell with an empty row of badges, so that there is none without a mark. */
export function Marks({ words }: { readonly words: readonly string[] }) {
  return words.length === 0 ? null : <Badges words={words} />;
}

export function Outcome({ request: { code, status } }: { readonly request: Pick<ShownRequest, "code" | "status"> }) {
  const tone = code === "ok" ? "good" : status >= 500 ? "bad" : "warn";
  return (
    <Badge tone={tone} title={`Status ${status}`}>
      {code}
    </Badge>
  );
}
