import { MachineLink, ModelLink, orDash, Table } from "../parts.tsx";
import { msText, numberText } from "../quantity.ts";
import { KeyName, useKeyNames } from "./key-name.tsx";
import type { UsagePart } from "#shared/usage/sum-usage.ts";
import type { UsageSum } from "../usage-sums.ts";

/** A table of sums, with all of them together in its last row. */
export function UsageTable({
  caption,
  sums,
  total,
  part,
}: {
  readonly caption: string;
  readonly sums: readonly UsageSum[];
  readonly total?: UsageSum;
  readonly part: UsagePart | "machine";
}) {
  const names = useKeyNames();
  const rows = sums.length === 0 || total === undefined ? sums : [...sums, total];
  const title = (sum: UsageSum) => {
    if (sum === total) return <strong>all</strong>;
    if (sum.of === null) return <span class="quiet">no model</span>;
    if (part === "key") return <KeyName id={sum.of} names={names} />;
    if (part === "day") return sum.of;
    return part === "model" ? <ModelLink id={sum.of} /> : <MachineLink name={sum.of} />;
  };
  return (
    <Table
      caption={caption}
      rows={rows}
      keyOf={(sum) => (sum === total ? "total" : `of ${sum.of}`)}
      empty="Nothing was used in this time."
      columns={[
        { name: part, cell: title },
        { name: "requests", right: true, cell: ({ requests }) => numberText(requests) },
        { name: "failed", right: true, cell: ({ failed }) => numberText(failed) },
        { name: "prompt tokens", right: true, cell: (sum) => numberText(sum.prompt_tokens) },
        { name: "answer tokens", right: true, cell: (sum) => numberText(sum.completion_tokens) },
        {
          name: "first token",
          right: true,
          wide: true,
          cell: ({ firstTokenMs }) => orDash(firstTokenMs, msText),
        },
      ]}
    />
  );
}
