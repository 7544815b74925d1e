import type { ComponentChildren } from "preact";
import { msText, numberText } from "../quantity.ts";
import type { UsagePart } from "#shared/usage/sum-usage.ts";
import type { UsageSum } from "../usage-sums.ts";
import { Table } from "../table.tsx";
import { KeyName, MachineLink, ModelLink, None, orDash, useKeyNames } from "../values.tsx";

interface UsageTableProps {
  readonly caption: string;
  readonly sums: readonly UsageSum[];
  readonly total?: UsageSum;
  readonly part: UsagePart | "machine";
  readonly filters?: ComponentChildren;
  readonly name?: string;
}

/** A table of sums, with all of them together in its last row. */
export function UsageTable({ sums, total, part, ...table }: UsageTableProps) {
  const names = useKeyNames();
  const title = (sum: UsageSum) => {
    if (sum === total) return <strong>all</strong>;
    if (sum.of === null) return <None text="no model" />;
    if (part === "key") return <KeyName id={sum.of} name={names.get(sum.of)} />;
    if (part === "day") return sum.of;
    return part === "model" ? <ModelLink id={sum.of} /> : <MachineLink name={sum.of} />;
  };
  return (
    <Table
      {...table}
      rows={sums}
      last={total}
      keyOf={(sum) => (sum === total ? "total" : `of ${sum.of}`)}
      empty="No request ended in this time."
      columns={[
        [part, title, "", ({ of }) => (of === null ? null : `${names.get(of) ?? ""} ${of}`.trim())],
        ["requests", ({ requests }) => numberText(requests), "right", ({ requests }) => requests],
        ["failed", ({ failed }) => numberText(failed), "right", ({ failed }) => failed],
        ["prompt tokens", (sum) => numberText(sum.prompt_tokens), "right", (sum) => sum.prompt_tokens],
        ["answer tokens", (sum) => numberText(sum.completion_tokens), "right", (sum) => sum.completion_tokens],
        ["first token", (sum) => orDash(sum.firstTokenMs, msText), "right wide", (sum) => sum.firstTokenMs],
      ]}
    />
  );
}
