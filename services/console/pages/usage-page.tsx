import { useMemo } from "preact/hooks";
import { dayMs } from "#shared/process/clock.ts";
import { usageParts } from "#shared/usage/sum-usage.ts";
import { daysAsked } from "#shared/usage/days-asked.ts";
import { query, setQuery } from "../address.ts";
import { useAnswer } from "../admin-api.ts";
import { Button, Filters, QueryChoice, QueryField } from "../forms.tsx";
import { Answered, Page, Section } from "../parts.tsx";
import { Plot } from "../plot.tsx";
import { msText, shortNumber } from "../quantity.ts";
import { csvOf, daysOf, type ShownUsageRow, sumBy, sumMachines, sumOf, type UsageSum } from "../usage-sums.ts";
import { UsageTable } from "./usage-table.tsx";

const daysShown = 30;
const parts = [...usageParts, "machine"] as const;

/** The figures of usage, and how each is drawn. */
const metrics = {
  tokens: ["Tokens", shortNumber],
  requests: ["Requests", shortNumber],
  failed: ["Failed requests", shortNumber],
  first_token: ["Wait for the first token", msText],
} as const;
type Metric = keyof typeof metrics;

const title = (metric: Metric) => [metric, metrics[metric][0]] as const;
const metricNames = Object.keys(metrics) as Metric[];

export function Usage() {
  const chosen = query.value;
  const given = { from: chosen.get("from") ?? undefined, to: chosen.get("to") ?? undefined };
  const { from, to } = daysAsked({ ...given, days: daysShown }, Date.now());
  const by = parts.find((part) => part === chosen.get("by")) ?? "model";
  const metric = metricNames.find((each) => each === chosen.get("of")) ?? "tokens";
  const key = chosen.get("key") ?? undefined;
  const usage = useAnswer("GET /usage", { query: { from, to, key } });
  return (
    <Page
      title="Usage"
      about={["Tokens and requests by day of UTC, as ", <code>trunkline usage</code>, " counts them."]}
    >
      <Filters label="Choices">
        <QueryField name="from" label="From" type="date" value={from} />
        <QueryField name="to" label="To" type="date" value={to} />
        <QueryChoice name="of" label="Figure" value={metric} options={metricNames.map(title)} />
        <QueryChoice name="by" label="Table by" value={by} options={parts} />
        {key !== undefined && <Button text="Of all keys" onDo={() => setQuery("key", undefined)} />}
      </Filters>
      <Answered of={usage} waiting="Loading the usage…">
        {({ data }) => (
          <>
            <ByDay rows={data} days={daysOf(from, to)} metric={metric} />
            <Section title={`By ${by}`} aside={<CsvLink rows={data} name={`usage-${from}-${to}.csv`} />}>
              {by === "machine" ? (
                <ByMachine />
              ) : (
                <UsageTable caption={`Usage by ${by}`} sums={sumBy(data, by)} total={sumOf("all", data)} part={by} />
              )}
            </Section>
          </>
        )}
      </Answered>
    </Page>
  );
}

interface ByDayProps {
  readonly rows: readonly ShownUsageRow[];
  readonly days: readonly string[];
  readonly metric: Metric;
}

function ByDay({ rows, days, metric }: ByDayProps) {
  const byDay = new Map(sumBy(rows, "day").map((sum) => [sum.of, sum]));
  const [name, unit] = metrics[metric];
  const without = metric === "first_token" ? null : 0;
  const bars = (of: string, figure: (sum: UsageSum) => number | null) => ({
    name: of,
    values: days.map((day) => {
      const sum = byDay.get(day);
      return sum === undefined ? without : figure(sum);
    }),
    kind: metric === "first_token" ? undefined : ("bars" as const),
  });
  const series =
    metric === "tokens"
      ? [
          bars("prompts and answers", (sum) => sum.prompt_tokens + sum.completion_tokens),
          bars("answers", (sum) => sum.completion_tokens),
        ]
      : metric === "first_token"
        ? [bars("mean", ({ firstTokenMs }) => firstTokenMs)]
        : [bars(name.toLowerCase(), (sum) => sum[metric])];
  const times = days.map((day) => Date.parse(`${day}T00:00:00`) / 1_000);
  return (
    <Section title={`${name} by day`}>
      <Plot label={`${name} by day`} unit={unit} times={times} series={series} />
    </Section>
  );
}

function ByMachine() {
  const since = useMemo(() => new Date(Date.now() - 7 * dayMs).toISOString(), []);
  const activity = useAnswer("GET /history", { query: { since, step: 86_400, by: "machine" } });
  return (
    <>
      <p class="quiet">Of the last 7 days, with the median wait for a first token.</p>
      <Answered of={activity}>
        {(answer) => <UsageTable caption="Usage by machine" sums={sumMachines(answer)} part="machine" />}
      </Answered>
    </>
  );
}

function CsvLink({ rows, name }: { readonly rows: readonly ShownUsageRow[]; readonly name: string }) {
  const url = useMemo(() => URL.createObjectURL(new Blob([csvOf(rows)], { type: "text/csv" })), [rows]);
  return (
    <a href={url} download={name}>
      CSV
    </a>
  );
}
