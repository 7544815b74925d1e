import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { MemoryBroker } from "#shared/broker/memory-broker.ts";
import { isFaultCode } from "#shared/fault/fault.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import { Exposition, BoundedLabels } from "../../services/gateway/metrics/exposition.ts";
import { countFleetEvents, measureTunnels } from "../../services/gateway/metrics/fleet-meters.ts";
import { openMeters } from "../../services/gateway/metrics/request-meters.ts";
import { MetricsText } from "../harness/metrics-text.ts";
import { type AskableMetric, checkPromQl } from "../harness/promql.ts";

interface Dashboard {
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly query: string | { readonly query: string } }[];
  };
  readonly panels: readonly {
    readonly id: number;
    readonly type: string;
    readonly title: string;
    readonly description?: string;
    readonly fieldConfig?: { readonly defaults: { readonly unit?: string } };
    readonly targets?: readonly { readonly expr: string; readonly legendFormat?: string }[];
  }[];
}

interface AlertRules {
  readonly groups: readonly {
    readonly rules: readonly {
      readonly alert: string;
      readonly expr: string;
      readonly labels: { readonly severity: string };
      readonly annotations: { readonly summary: string };
    }[];
  }[];
}

const documented = readFileSync(join(import.meta.dirname, "../../docs/metrics.md"), "utf8");
const rows = documented
  .split("\n")
  .filter((line) => line.startsWith("| `"))
  .map((line) =>
    line
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim()),
  )
  .map(([name, type, labels, meaning]) => ({ name, type, labels, meaning }));

const log = createLog({ level: "silent", name: "test" });
const exposition = new Exposition();
const machineLabels = new BoundedLabels(1);
const meters = openMeters({
  exposition,
  machineLabels,
  fleet: countFleetEvents(exposition, machineLabels),
  broker: new MemoryBroker({ clock, log }).connect(),
  keys: { ready: async () => undefined },
  clock,
  machines: () => [],
  offered: () => undefined,
  openJobs: () => 0,
});
measureTunnels(exposition, () => 0);
afterAll(() => meters.stop());

const shown = MetricsText.read((await meters.show(undefined)).text);
const { described } = meters.exposition;
/** The default metrics of prom-client. Their samples tell their labels; collections have none before the first. */
const ofProcess = [...shown.families.values()]
  .filter(({ name }) => !described.some((one) => one.name === name))
  .map(({ name, type, help, samples }) => {
    const sample = type === "histogram" ? samples[0] : (samples[0] ?? { labels: {} });
    const labels = Object.keys(sample?.labels ?? { kind: "" }).filter((label) => label !== "le");
    return { name, type, help, labels };
  });

test("every metric is in the document of metrics with its type, labels and meaning, and no other", () => {
  const told = [...described, ...ofProcess].map(({ name, type, labels, help }) => ({
    name: `\`${name}\``,
    type,
    labels: labels.map((label) => `\`${label}\``).join(", "),
    meaning: help,
  }));
  expect(told.length).toBeGreaterThan(30);
  const byName = (one: { name?: string | undefined }, other: { name?: string | undefined }): number =>
    (one.name ?? "") < (other.name ?? "") ? -1 : 1;
  const expected = rows.filter(({ name = "" }) => process.platform === "linux" || !name.startsWith("`process_"));
  const found = told.filter(({ name }) => process.platform === "linux" || !name.startsWith("`process_"));
  expect(expected.toSorted(byName)).toEqual(found.toSorted(byName));
});

test("every metric of a scrape is named as Prometheus names things", () => {
  expect(described.filter(({ name }) => !shown.families.has(name))).toEqual([]);
  for (const { name, type } of shown.families.values()) {
    expect(name).toMatch(/^(trunkline|process|nodejs)_[a-z0-9_]+$/);
    expect([name, name.endsWith("_total")]).toEqual([name, type === "counter"]);
    if (type === "histogram") expect(name).toMatch(/_seconds$/);
  }
});

const metrics = new Map<string, AskableMetric>([
  ["up", { labels: [], grows: false }],
  ...[...described, ...ofProcess].flatMap(({ name, type, labels, help }): [string, AskableMetric][] => {
    const grows = type !== "gauge" || / since (?:it|its agent|an agent) started/.test(help);
    if (type !== "histogram") return [[name, { labels, grows }]];
    const parts = { _sum: labels, _count: labels, _bucket: [...labels, "le"] };
    return Object.entries(parts).map(([part, of]) => [name + part, { labels: of, grows }]);
  }),
]);

/** Returns the faults of an expression: unknown metrics, labels and codes, and labels in `told` that its result lacks. */
function faultsOf(expression: string, told: readonly string[] = []): string[] {
  const { faults, labels } = checkPromQl(expression, metrics);
  const ofFaults = /trunkline_(?:requests|faults)_total\{[^}]*(?:code|outcome)=~?"([^"]+)"/g;
  const codes = [...expression.matchAll(ofFaults)].flatMap(([, named = ""]) => named.split("|"));
  return [
    ...faults,
    ...codes.filter((code) => !isFaultCode(code)).map((code) => `there is no fault ${code}`),
    ...told.filter((label) => !labels.has(label)).map((label) => `the result has no label ${label}`),
  ];
}

const infra = join(import.meta.dirname, "../../infra");

describe.each(["fleet", "people-and-cost"])("the dashboard %s", (name) => {
  const board: Dashboard = JSON.parse(readFileSync(join(infra, `dashboards/${name}.json`), "utf8"));
  const variables = board.templating.list;
  /** An expression as Grafana asks Prometheus for it. */
  const filled = (expression: string): string =>
    variables
      .reduce((text, variable) => text.replaceAll(`$${variable.name}`, ".*"), expression)
      .replaceAll(/\$__(?:rate_interval|range)/g, "5m");
  const panels = board.panels.filter(({ type }) => type !== "row");

  test(`each panel of ${name} asks for metrics and labels that exist, and says what it shows`, () => {
    const faults = panels.flatMap(({ title, targets = [] }) =>
      targets.flatMap(({ expr, legendFormat = "" }) => {
        const told = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = ""]) => label);
        const found = faultsOf(filled(expr), told);
        if (filled(expr).includes("$")) found.push("a variable is unknown");
        return found.map((fault) => `${title}: ${fault}`);
      }),
    );
    expect(faults).toEqual([]);
    for (const { title, description, targets, fieldConfig } of panels) {
      expect([title, targets?.length]).not.toContain(0);
      expect([title, description, fieldConfig?.defaults.unit]).not.toContain(undefined);
    }
    expect(new Set(board.panels.map(({ id }) => id)).size).toBe(board.panels.length);
  });

  test(`each variable of ${name} takes its values from a metric that has the label`, () => {
    const asked = variables.flatMap(({ query }) => (typeof query === "string" ? [] : query.query));
    expect(asked.length).toBe(3);
    for (const query of asked) {
      const [, metric = "", label = ""] = /^label_values\((\w+), (\w+)\)$/.exec(query) ?? [];
      expect([query, ...faultsOf(`count by (${label}) (${metric})`)]).toEqual([query]);
    }
  });
});

test("each alert of Prometheus asks for metrics and labels that exist, and its text shows labels of its result", () => {
  const { groups }: AlertRules = parse(readFileSync(join(infra, "prometheus/alerts.yml"), "utf8"));
  const rules = groups.flatMap((group) => group.rules);
  expect(rules.length).toBeGreaterThan(15);
  const faults = rules.flatMap(({ alert, expr, annotations: { summary } }) => {
    const told = [...summary.matchAll(/\$labels\.(\w+)/g)].map(([, label = ""]) => label);
    return faultsOf(expr, told).map((fault) => `${alert}: ${fault}`);
  });
  expect(faults).toEqual([]);
  for (const { labels } of rules) expect(["critical", "warning", "info"]).toContain(labels.severity);
});

test.each([
  ["sum(rate(trunkline_request_total[5m]))", "there is no metric trunkline_request_total"],
  ["sum by (team) (rate(trunkline_requests_total[5m]))", "there is no label team to group by"],
  ['trunkline_requests_total{machine="a"}', "trunkline_requests_total has no label machine"],
  ["rate(trunkline_open_streams[5m])", "rate of the gauge trunkline_open_streams"],
  ['rate(trunkline_faults_total{code="no_money"}[5m])', "there is no fault no_money"],
  ["sum by (team) (trunkline_cost_total) / sum(trunkline_cost_total)", "different labels"],
  ["sum(rate(trunkline_requests_total[5m])", "a syntax error"],
])("the check of expressions finds the fault in %s", (expression, fault) => {
  expect(faultsOf(expression).join()).toContain(fault);
});
