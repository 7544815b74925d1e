import type { ComponentChildren } from "preact";
import { amountsText } from "#shared/money/money.ts";
import { to } from "../address.ts";
import { useAnswer } from "../admin-api.ts";
import { currency } from "../currency.ts";
import { Answered, Section } from "../parts.tsx";
import { msText, numberText } from "../quantity.ts";
import { type AnyPart, sumBy, sumOf, type UsageSum } from "../usage-sums.ts";
import { type Column, Table } from "../table.tsx";
import {
  KeyName,
  MachineLink,
  ModelLink,
  Name,
  None,
  orDash,
  PersonLink,
  TeamLink,
  useKeyNames,
  usePeople,
} from "../values.tsx";

interface UsageTableProps {
  readonly caption: string;
  readonly sums: readonly UsageSum[];
  readonly total: UsageSum;
  readonly part: AnyPart;
  readonly filters?: ComponentChildren;
  readonly name?: string;
}

/** The words for rows without a part. */
const withoutPart: Readonly<Partial<Record<AnyPart, string>>> = {
  team: "no team",
  person: "nobody's",
  kind: "own machines",
  machine: "no machine",
  model: "no model",
  user: "no end user",
};

const links: Readonly<Partial<Record<AnyPart, (of: string, name: string | undefined) => ComponentChildren>>> = {
  key: (of, name) => <KeyName id={of} name={name} />,
  person: (of, name) => <PersonLink id={of} name={name} />,
  team: (of) => <TeamLink name={of} />,
  model: (of) => <ModelLink id={of} />,
  machine: (of) => <MachineLink name={of} />,
  user: (of) => <Name>{of}</Name>,
};

/** The usage of a key, a team or a person in the last 30 days, by model. */
export function UsageOf({ asked }: { readonly asked: { readonly [Part in "key" | "team" | "person"]?: string } }) {
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
  const names = { key: useKeyNames(), person: usePeople() }[part as string] ?? noNames;
  const title = (sum: UsageSum) => {
    const { of } = sum;
    if (sum === total) return <strong>all</strong>;
    if (of === null) return <None text={withoutPart[part] ?? "–"} />;
    return links[part]?.(of, names.get(of)) ?? of;
  };
  const all = [...sums, total];
  const costs = new Map(amountsText(all.map((sum) => sum.cost)).map((text, place) => [all[place], text]));
  const cost: Column<UsageSum> = [`cost, ${currency.value}`, (sum) => costs.get(sum), "right", (sum) => sum.cost];
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
        ...(total.cost > 0 ? [cost] : []),
        ["first token", (sum) => orDash(sum.firstTokenMs, msText), "right wide", (sum) => sum.firstTokenMs],
      ]}
    />
  );
}

const noNames: ReadonlyMap<string, string> = new Map();
