import { type SummedUsage, sumUsage, totalUsage } from "#shared/usage/sum-usage.ts";
import { query } from "../address.ts";
import { QueryChoice, QueryField } from "../forms.tsx";
import { Answered, Page } from "../parts.tsx";
import { numberText } from "../quantity.ts";
import { Table } from "../table.tsx";
import { money } from "./budgets.tsx";
import { useOwn } from "./member-api.ts";

const parts = ["day", "model", "key"] as const;

export function OwnUsage() {
  const by = parts.find((each) => each === query.value.get("by")) ?? "day";
  const [from, to] = ["from", "to"].map((name) => query.value.get(name) ?? "");
  const usage = useOwn("GET /usage", { query: { from: from || undefined, to: to || undefined } });
  const names = new Map<string, string>(useOwn("GET /keys", {}).answer?.data.map(({ id, name }) => [id, name]));
  const partOf = ({ part }: SummedUsage) => part[by] ?? "no model";
  const textOf = (sum: SummedUsage) => names.get(partOf(sum)) ?? partOf(sum);
  return (
    <Page title="Usage" about="What your keys used. Days are those of UTC.">
      <Answered of={usage} waiting="Loading your usage…">
        {({ data }) => {
          const total = { ...totalUsage(data), part: { [by]: "all" } };
          return (
            <Table
              caption="Your usage"
              rows={sumUsage(data, [by])}
              last={total}
              keyOf={(sum) => (sum === total ? "total" : `of ${partOf(sum)}`)}
              empty="No request of your keys ended in these days."
              filters={[
                <QueryChoice key="by" name="by" label="By" value={by} options={parts} />,
                <QueryField key="from" name="from" label="From" type="date" value={from ?? ""} />,
                <QueryField key="to" name="to" label="To" type="date" value={to ?? ""} />,
              ]}
              columns={[
                [by, (sum) => <bdi>{textOf(sum)}</bdi>, "", textOf],
                ["requests", ({ requests }) => numberText(requests), "right", ({ requests }) => requests],
                ["failed", ({ failed }) => numberText(failed), "right wide", ({ failed }) => failed],
                ["prompt tokens", (sum) => numberText(sum.prompt_tokens), "right", (sum) => sum.prompt_tokens],
                ["answer tokens", (sum) => numberText(sum.completion_tokens), "right", (sum) => sum.completion_tokens],
                ["cost", (sum) => money(sum.cost), "right", (sum) => sum.cost],
              ]}
            />
          );
        }}
      </Answered>
    </Page>
  );
}
