import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { MemoryBroker } from "#shared/broker/memory-broker.ts";
import { isFaultCode } from "#shared/fault/fault.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import { Exposition, BoundedLabels } from "../../services/gateway/metrics/exposition.ts";
import { countFleetEvents, measureTunnels } from "../../services/gateway/metrics/fleet-meters.ts";
import { openMeters } from "../../services/gateway/metrics/request-meters.ts";
import { MetricsText } from "../harness/metrics-text.ts";

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

test.each(["dashboards/trunkline.json", "prometheus/alerts.yml"])("every metric that %s asks for is there", (file) => {
  const text = readFileSync(join(import.meta.dirname, "../../infra", file), "utf8");
  const names = [...shown.families.values()].flatMap(({ name, type }) =>
    type === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  );
  const asked = new Set(text.match(/\b(?:trunkline|process|nodejs)_[a-z_]+/g));
  expect(asked.size).toBeGreaterThan(5);
  expect([...asked].filter((name) => !names.includes(name))).toEqual([]);
});

test("alerts and dashboards ask for outcomes that there are", () => {
  const text = readFileSync(join(import.meta.dirname, "../../infra/prometheus/alerts.yml"), "utf8");
  const codes = [...text.matchAll(/code=~?"([^"]+)"/g)].flatMap(([, named = ""]) => named.split("|"));
  expect(codes.length).toBeGreaterThan(5);
  expect(codes.filter((code) => !isFaultCode(code))).toEqual([]);
});
