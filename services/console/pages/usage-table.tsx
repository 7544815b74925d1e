import type { ComponentChildren } from "preact";
import type { UsagePart } from "#shared/usage/sum-usage.ts";
import { to } from "../address.ts";
import { useAnswer } from "../admin-api.ts";
import { Answered, Section } from "../parts.tsx";
import { msText, numberText } from "../quantity.ts";
import { sumBy, sumOf, type UsageSum } from "../usage-sums.ts";
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

/** The usage of a key in the last 30 days, by model. */
export function UsageOf({ asked }: { readonly asked: { readonly key: string } }) {
  const usage = useAnswer("GET /usage", { query: asked });
  return (
    <Section title="Usage of the last 30 days" aside={<a href={to(["usage"], { ...asked, by: "day" })}>By day</a>}>
      <Answered of={usage}>
        {({ data }) => (
          <UsageTable
            name="usage"
            caption="Usage by model"
            sums={sumBy(data, "model")}
            total={sumOf("all", data)}
            part="model"
          />
        )}
      </Answered>
    </Section>
  );
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
