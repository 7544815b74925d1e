import { useMemo } from "preact/hooks";
import { dayMs, dayOf } from "#shared/process/clock.ts";
import { cutParts, usageParts } from "#shared/usage/sum-usage.ts";
import { query, setQuery } from "../address.ts";
import { useAnswer } from "../admin-api.ts";
import { Button, Choice, Filters, QueryChoice, TextField } from "../forms.tsx";
import { clock, fleet } from "../live.ts";
import { Answered, Page, Section } from "../parts.tsx";
import { zoneName } from "../plot-axes.ts";
import { csvOf, sumBy, sumOf } from "../usage-sums.ts";
import { HistoryCharts } from "./history-charts.tsx";
import { UsageTable } from "./usage-table.tsx";

const parts = [...usageParts, ...cutParts] as const;
const holders = { key: "keys", team: "teams", person: "people" } as const;
const cuts = ["model", "machine"] as const;
const hourMs = 3_600_000;
/** The ranges that end now, in milliseconds. */
const ranges = { "1 h": hourMs, "24 h": dayMs, "7 d": 7 * dayMs, "30 d": 30 * dayMs } as const;
/** Models or machines that a chart tells apart. */
const partsShown = 6;

/** Returns the chosen range. The address has the ends of one that does not end now. */
function rangeOf(chosen: URLSearchParams) {
  const [from, to] = ["from", "to"].map((name) => Date.parse(chosen.get(name) ?? ""));
  if (from && to)
    return { name: "chosen", sinceMs: from, untilMs: to, asked: { since: iso(from), until: iso(to) }, turn: 0 };
  const [name, spanMs] =
    Object.entries(ranges).find(([each]) => each === chosen.get("range")) ?? (["24 h", dayMs] as const);
  const untilMs = clock.value;
  // Charts of hours change seldom, and a page that stays open asks seldom.
  const turn = Math.floor(untilMs / (spanMs > dayMs ? 600_000 : 60_000));
  return { name, sinceMs: untilMs - spanMs, untilMs, asked: { span: spanMs / 1_000 }, turn };
}

const iso = (ms: number): string => new Date(ms).toISOString();

function choose(fromMs: number, untilMs: number): void {
  setQuery("from", iso(fromMs), "range");
  setQuery("to", iso(untilMs));
}

export function Usage() {
  const chosen = query.value;
  const range = rangeOf(chosen);
  const cut = cuts.find((each) => each === chosen.get("cut"));
  const machine = chosen.get("machine") ?? undefined;
  const model = chosen.get("model") ?? undefined;
  const only = machine ?? model;
  const by = only === undefined && cut !== undefined ? { by: cut, limit: partsShown } : {};
  const history = useAnswer("GET /history", { query: { ...range.asked, ...by, machine, model } }, range.turn);
  return (
    <Page title="Usage" about={`Requests, tokens, waits and failures. Times are those of ${zoneName()}.`}>
      <Filters label="Choices">
        <Choice
          label="Range"
          value={range.name}
          options={[...Object.keys(ranges), "chosen"]}
          onChoose={(name) =>
            name === "chosen" ? choose(range.sinceMs, range.untilMs) : setQuery("range", name, "from", "to")
          }
        />
        {range.name === "chosen" && <Ends {...range} />}
        <QueryChoice
          name="cut"
          label="Tell apart"
          value={cut ?? ""}
          options={[
            ["", "nothing"],
            ["model", "models"],
            ["machine", "machines"],
          ]}
        />
        <Only model={model} machine={machine} />
      </Filters>
      <Answered of={history} waiting="Loading the charts…">
        {(answer) => (
          <>
            <HistoryCharts history={answer} onRange={choose} />
            <SumsTable {...range} />
          </>
        )}
      </Answered>
    </Page>
  );
}

/** The ends of a chosen range, in the viewer's zone. The address has them in UTC. */
function Ends({ sinceMs, untilMs }: { readonly sinceMs: number; readonly untilMs: number }) {
  const local = (ms: number): string => iso(ms - new Date(ms).getTimezoneOffset() * 60_000).slice(0, 16);
  const field = (name: string, label: string, ms: number) => (
    <TextField
      label={label}
      type="datetime-local"
      value={local(ms)}
      onText={(text) => text !== "" && setQuery(name, iso(Date.parse(text)))}
    />
  );
  return [field("from", "From", sinceMs), field("to", "To", untilMs)];
}

function Only({ model, machine }: { readonly model: string | undefined; readonly machine: string | undefined }) {
  const models = useAnswer("GET /models", {}).answer?.data.map(({ id }) => id) ?? [];
  const machines = fleet.value?.data.map((each) => each.machine) ?? [];
  const value = machine !== undefined ? `machine ${machine}` : model !== undefined ? `model ${model}` : "";
  const named = [
    ...new Set([...models.map((id) => `model ${id}`), ...machines.map((name) => `machine ${name}`), value]),
  ];
  return (
    <Choice
      label="Only"
      value={value}
      options={[["", "all"], ...named.filter((each) => each !== "")]}
      onChoose={(text) => {
        const [, part = "model", name] = /^(\w+) (.*)$/s.exec(text) ?? [];
        setQuery(part, name, "model", "machine");
      }}
    />
  );
}

/** The sums of whole days of UTC in the range as a table. */
function SumsTable({ sinceMs, untilMs, turn }: ReturnType<typeof rangeOf>) {
  const chosen = query.value;
  const part = parts.find((each) => each === chosen.get("by")) ?? "key";
  const cut = cutParts.find((each) => each === part);
  const [from, to] = [dayOf(sinceMs), dayOf(untilMs)];
  const named = Object.entries(holders).flatMap(([holder, all]) => {
    const name = chosen.get(holder);
    return name === null ? [] : [{ holder, name, all }];
  });
  const only = Object.fromEntries(named.map(({ holder, name }) => [holder, name]));
  const usage = useAnswer("GET /usage", { query: { from, to, by: cut, ...only } }, turn);
  // An end user is known by a digest, once the name is gone.
  const rows = usage.answer?.data.map((row) => ({ ...row, user: row.user_name ?? row.user })) ?? [];
  const filters = (
    <>
      <QueryChoice name="by" label="By" value={part} options={parts} />
      {named.map(({ holder, all }) => (
        <Button key={holder} text={`Of all ${all}`} onDo={() => setQuery(holder, undefined)} />
      ))}
    </>
  );
  return (
    <Section title={`By ${part}`} aside={<CsvLink text={csvOf(rows, cut)} name={`usage-${from}-${to}.csv`} />}>
      <p class="quiet">
        Whole days of UTC, {from === to ? from : `${from} to ${to}`}, as <code>trunkline usage</code> counts them.
      </p>
      <Answered of={usage} waiting="Loading the usage…">
        {() => (
          <UsageTable
            caption={`Usage by ${part}`}
            sums={sumBy(rows, part)}
            total={sumOf("all", rows)}
            part={part}
            filters={filters}
          />
        )}
      </Answered>
    </Section>
  );
}

function CsvLink({ text, name }: { readonly text: string; readonly name: string }) {
  const url = useMemo(() => URL.createObjectURL(new Blob([text], { type: "text/csv" })), [text]);
  return (
    <a href={url} download={name}>
      CSV
    </a>
  );
}
