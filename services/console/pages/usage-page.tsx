import { useMemo } from "preact/hooks";
import { usageParts } from "#shared/usage/sum-usage.ts";
import { daysAsked } from "#shared/usage/days-asked.ts";
import { query, setQuery } from "../address.ts";
import { useAnswer } from "../admin-api.ts";
import { Choice, QueryButton, TextField } from "../forms.tsx";
import { FaultNotice, Page } from "../parts.tsx";
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

export function Usage() {
  return (
    <Page
      title="Usage"
      about={
        <>
          Tokens and requests by day of UTC, as <code>trunkline usage</code> counts them.
        </>
      }
    >
      <Chosen />
    </Page>
  );
}

function Chosen() {
  const chosen = query.value;
  const given = { from: chosen.get("from") ?? undefined, to: chosen.get("to") ?? undefined };
  const { from, to } = daysAsked({ ...given, days: daysShown }, Date.now());
  const by = parts.find((part) => part === chosen.get("by")) ?? "model";
  const metric = (Object.keys(metrics) as Metric[]).find((each) => each === chosen.get("of")) ?? "tokens";
  const key = chosen.get("key") ?? undefined;
  const { answer, fault } = useAnswer("GET /usage", { query: { from, to, key } });
  return (
    <>
      <form class="row" onSubmit={(event) => event.preventDefault()} aria-label="Choices">
        <TextField label="From" type="date" value={from} onText={(text) => setQuery("from", text)} />
        <TextField label="To" type="date" value={to} onText={(text) => setQuery("to", text)} />
        <Choice
          label="Figure"
          value={metric}
          onChoose={(value) => setQuery("of", value)}
          options={Object.entries(metrics).map(([name, [title]]) => [name, title] as const)}
        />
        <Choice
          label="Table by"
          value={by}
          onChoose={(value) => setQuery("by", value)}
          options={parts.map((part) => [part, part] as const)}
        />
        {key !== undefined && (
          <QueryButton name="key" value={undefined}>
            Of all keys
          </QueryButton>
        )}
      </form>
      <FaultNotice fault={fault} />
      {answer === undefined ? (
        fault === undefined && <p class="quiet">Usage is added up…</p>
      ) : (
        <Figures rows={answer.data} from={from} to={to} by={by} metric={metric} />
      )}
    </>
  );
}

function Figures({
  rows,
  from,
  to: until,
  by,
  metric,
}: {
  readonly rows: readonly ShownUsageRow[];
  readonly from: string;
  readonly to: string;
  readonly by: (typeof parts)[number];
  readonly metric: Metric;
}) {
  const days = daysOf(from, until);
  const byDay = new Map(sumBy(rows, "day").map((sum) => [sum.of, sum]));
  const [title, unit] = metrics[metric];
  const valuesOf = (figure: (sum: UsageSum) => number | null) =>
    days.map((day) => {
      const sum = byDay.get(day);
      return sum === undefined ? (metric === "first_token" ? null : 0) : figure(sum);
    });
  const series =
    metric === "tokens"
      ? [
          {
            name: "prompts and answers",
            values: valuesOf((sum) => sum.prompt_tokens + sum.completion_tokens),
            kind: "bars" as const,
          },
          { name: "answers", values: valuesOf((sum) => sum.completion_tokens), kind: "bars" as const },
        ]
      : metric === "first_token"
        ? [{ name: "mean", values: valuesOf(({ firstTokenMs }) => firstTokenMs) }]
        : [{ name: title.toLowerCase(), values: valuesOf((sum) => sum[metric]), kind: "bars" as const }];
  return (
    <>
      <section>
        <h2>{title} by day</h2>
        <Plot
          label={`${title} by day`}
          unit={unit}
          times={days.map((day) => Date.parse(`${day}T00:00:00`) / 1_000)}
          series={series}
        />
      </section>
      <section>
        <header>
          <h2>By {by}</h2>
          <CsvLink rows={rows} name={`usage-${from}-${until}.csv`} />
        </header>
        {by === "machine" ? (
          <ByMachine />
        ) : (
          <UsageTable caption={`Usage by ${by}`} sums={sumBy(rows, by)} total={sumOf("all", rows)} part={by} />
        )}
      </section>
    </>
  );
}

function ByMachine() {
  const { answer, fault } = useAnswer("GET /activity", { query: { minutes: 10_080, step: 86_400 } });
  return (
    <>
      <p class="quiet">
        Of the last 7 days, from the records of requests, with the median wait for a first token.
        {answer?.is_whole === false && " Older requests of this time have no record any more."}
      </p>
      <FaultNotice fault={fault} />
      {answer !== undefined && <UsageTable caption="Usage by machine" sums={sumMachines(answer)} part="machine" />}
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
