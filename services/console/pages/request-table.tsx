import type { ShownRequest } from "#shared/requests/shown-request.ts";
import { to } from "../address.ts";
import { Badge, type Column, MachineLink, Name, orDash, Table, Time } from "../parts.tsx";
import { KeyName, useKeyNames } from "./key-name.tsx";
import { msText, numberText } from "../quantity.ts";

const columns: readonly Column<ShownRequest>[] = [
  {
    name: "arrived",
    cell: ({ at, id }) => (
      <a href={to(["requests", id])}>
        <Time at={at} />
      </a>
    ),
  },
  { name: "model", cell: ({ model }) => (model === null ? <span class="quiet">–</span> : <Name>{model}</Name>) },
  {
    name: "machine",
    cell: ({ machine, tried }) => {
      const name = machine ?? tried.at(-1)?.machine;
      return name === undefined ? <span class="quiet">–</span> : <MachineLink name={name} />;
    },
  },
  { name: "outcome", cell: (request) => <Outcome request={request} /> },
  { name: "first token", right: true, wide: true, cell: ({ first_token_ms: ms }) => orDash(ms, msText) },
  { name: "total", right: true, cell: ({ total_ms: ms }) => msText(ms) },
  { name: "prompt", right: true, wide: true, cell: ({ prompt_tokens: tokens }) => numberText(tokens) },
  { name: "answer", right: true, wide: true, cell: ({ completion_tokens: tokens }) => numberText(tokens) },
  {
    name: "tokens/s",
    right: true,
    wide: true,
    cell: ({ tokens_per_second: speed }) => orDash(speed, numberText),
  },
];

export function RequestTable({
  caption,
  rows,
  empty,
}: {
  readonly caption: string;
  readonly rows: readonly ShownRequest[];
  readonly empty: string;
}) {
  const names = useKeyNames();
  const keyColumn: Column<ShownRequest> = {
    name: "key",
    wide: true,
    cell: ({ key }) => <KeyName id={key} names={names} />,
  };
  const all = [...columns, keyColumn];
  return <Table caption={caption} columns={all} rows={rows} keyOf={({ id }) => id} empty={empty} />;
}

export function Outcome({ request: { code, status } }: { readonly request: Pick<ShownRequest, "code" | "status"> }) {
  const tone = code === "ok" ? "good" : status >= 500 ? "bad" : "warn";
  return (
    <Badge tone={tone} title={`Status ${status}`}>
      {code}
    </Badge>
  );
}
