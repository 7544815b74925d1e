import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { featureTable } from "../../bench/report/feature-costs.ts";
import { markdownReport } from "../../bench/report/markdown-report.ts";
import { comparisonsOf, lossesOf } from "../../bench/report/losses.ts";
import { judgeTargets } from "../../bench/report/judge-targets.ts";
import { ratioTable } from "../../bench/report/ratio-table.ts";
import { readResults } from "../../bench/report/results.ts";
import { targetTable } from "../../bench/report/target-table.ts";
import { writeReport } from "../../bench/report/write-report.ts";
import { costing, measured } from "./measured.ts";
import { resultsOf } from "./results-of-a-run.ts";

const ownTimes = { total: { p50: 900, p99: 5_000, count: 99 } };
const ours = costing("trunkline", [20, 30], ownTimes);
const base = costing("bare", [10, 20], { total: { p50: 1_000, p99: 2_000, count: 99 } });
const both = resultsOf([...ours, ...base]);

describe("what Trunkline is worse in", () => {
  test("is every figure of every scenario, the worst first, and nothing that is better", () => {
    const losses = lossesOf(comparisonsOf(both));
    expect(losses.map(({ against, figure, times }) => [against, figure.name, times.median])).toEqual([
      ["bare", "whole answer, p99", 2.5],
      ["bare", "CPU per request", 1.75],
    ]);
  });

  test("counts fewer per second as worse", () => {
    const slow = resultsOf([...costing("trunkline", [1], { requests: 500 }), ...costing("nginx", [9])]);
    expect(lossesOf(comparisonsOf(slow)).map(({ figure, times }) => [figure.name, times.median])).toContainEqual([
      "requests per s",
      2,
    ]);
  });

  test("does not count a whole answer's first byte beside the answer", () => {
    const withFirst = both.measurements.map((one) => ({ ...one, firstByte: { p50: one.round, p99: 9, count: 9 } }));
    expect(comparisonsOf(resultsOf(withFirst))).toHaveLength(comparisonsOf(both).length);
    const streamed = withFirst.map((one) => ({ ...one, chunks: 9 }));
    expect(comparisonsOf(resultsOf(streamed))).toHaveLength(comparisonsOf(both).length + 2);
  });

  test("is told in the report with what both had", () => {
    const { markdown } = markdownReport(both);
    expect(markdown).toContain("| bare | 2 | 4 |");
    expect(markdown).toContain("| Small answers | whole answer, p99 | 2.50 | 5.00 ms | 2.00 ms |");
  });
});

describe("a report", () => {
  test("says on what, with what and how it was measured, and what did not run", () => {
    const variants = [...both.variants, { name: "portkey", title: "P", version: "", missing: "npm is away" }];
    const { markdown } = markdownReport({ ...both, variants });
    const facts = ["Some CPU, 2 cores, 16 GB, Linux 6.1.0 x64", "node: 26.0.0", "rounds: 2", "2026-01-02T03:04:05"];
    for (const fact of [...facts, "| bare | what bare is | 1.0.0 |", "| portkey | P | not run: npm is away |"]) {
      expect(markdown).toContain(fact);
    }
  });

  test("says what came to nothing, once", () => {
    const failures = [{ variant: "bare", round: 2, why: "no port" }];
    const { markdown } = markdownReport(resultsOf([...ours, ...base.slice(0, 1)], { failures }));
    expect(markdown).toContain("| all | bare | 2 | no port |");
    expect(markdown).not.toContain("was not measured");
  });

  test("tells by time what it costs to be asked nothing, and for each connection what it takes", () => {
    const scenario = {
      name: "idle",
      title: "Idle",
      unit: "request",
      pace: { connections: 2_000, rate: 0.001 },
    } as const;
    const rssKb = { gateway: { before: 100_000, after: 114_000 } };
    const idle = measured({ scenario: "idle", windowS: 2, requests: 1, cpuUs: { gateway: 3_000 }, rssKb });
    const { markdown } = markdownReport(resultsOf([idle], { scenarios: [scenario] }));
    expect(markdown).toMatch(
      /\| variant \| CPU per second, µs \| resident, MB \| more resident for each connection, KB \|/,
    );
    expect(markdown).toContain("| **trunkline** | 1,500 | 111 | gateway 7.00 | 1 |");
  });

  test("says by how much a feature makes it dearer that was switched off in the same rounds", () => {
    const partly = resultsOf([...ours, ...costing("trunkline-no-log", [16, 30])]);
    expect(markdownReport(partly).markdown).toContain(
      "| feature | whole-32 |\n| :-- | --: |\n| log | 13 % (0 to 25) |",
    );
    expect(featureTable(partly)).toBe("feature  whole-32\nlog      13 % (0 to 25)\n");
    expect([markdownReport(both).markdown.includes("What features cost"), featureTable(both)]).toEqual([false, ""]);
  });

  test("says for whom a scenario is not, and why", () => {
    const [scenario] = both.scenarios.map((one) => ({ ...one, not: { variants: ["portkey"], reason: "too many" } }));
    const { markdown } = markdownReport({ ...both, scenarios: scenario === undefined ? [] : [scenario] });
    expect(markdown).toContain("Not for portkey: too many.");
  });

  test("says which windows were left out, and why", () => {
    const lacking = [...ours, ...costing("bare", [10], { stealShare: 0.5 })];
    const { markdown } = markdownReport(resultsOf(lacking));
    expect(markdown).toContain("| whole-32 | bare | 1 | the host gave 50.0 % of the time to others |");
    expect(markdown).toContain("| whole-32 | bare | 2 | was not measured |");
    const variants = both.variants.map((variant) => (variant.name === "bare" ? { ...variant, rounds: 1 } : variant));
    expect(markdownReport(resultsOf(lacking, { variants })).markdown).not.toContain("was not measured");
  });

  test("shows a cost by process, and the ratio to each baseline with its spread", () => {
    const { markdown } = markdownReport(
      resultsOf([...base, ...ours.map((one) => ({ ...one, cpuUs: { ...one.cpuUs, nats: 5_000 } }))]),
    );
    expect(markdown).toContain(
      "| **trunkline** | 333 | 30.0 (25.0–35.0) | gateway 25.0, nats 5.00 | 0.900 / 5.00 | 2 |",
    );
    expect(markdown).toContain("| bare | 2.13 (1.75–2.50) |");
  });

  test("links every plot that it makes, and no other", () => {
    const growth = {
      name: "streams",
      title: "CPU over streams",
      xLabel: "streams",
      yLabel: "µs",
      counts: "each",
    } as const;
    const { markdown, plots } = markdownReport(resultsOf(both.measurements, { growths: [{ ...growth, series: [] }] }));
    const linked = [...markdown.matchAll(/^!\[.*\]\((.*)\)$/gm)].map(([, file = ""]) => file);
    expect(linked.toSorted()).toEqual(plots.map(({ file }) => file).toSorted());
    expect(linked.toSorted()).toEqual(["cost-whole-32.svg", "growth-streams.svg", "latency-answer.svg"]);
  });

  test("takes what others wrote for text", () => {
    const variants = [{ name: "bare", title: "a | b <img>\n# c", version: "`1`" }];
    const { markdown } = markdownReport({ ...both, variants });
    expect(markdown).toContain("| bare | a \\| b &lt;img>?# c | \\`1\\` |");
  });

  test("can be made again from what was written beside it", async () => {
    const folder = await mkdtemp(join(tmpdir(), "report-"));
    try {
      await writeReport(both, folder);
      const first = await readFile(join(folder, "report.md"), "utf8");
      expect((await readdir(folder)).toSorted()).toEqual([
        "cost-whole-32.svg",
        "latency-answer.svg",
        "report.md",
        "results.json",
      ]);
      const again = await readResults(join(folder, "results.json"));
      expect(markdownReport(again).markdown).toBe(first);
      await writeFile(join(folder, "results.json"), '{"format":2}');
      await expect(readResults(join(folder, "results.json"))).rejects.toThrow("another format");
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe("a terminal's tables", () => {
  test("have Trunkline over each other variant, in each scenario", () => {
    const lines = ratioTable(both).split("\n");
    expect(lines[0]).toMatch(/^scenario +figure +trunkline +\/ bare$/);
    expect(lines[1]).toMatch(/^whole-32 +CPU per request, µs +25\.0 \(20\.0–30\.0\) +1\.75 \(1\.50–2\.00\)$/);
    expect(lines).toHaveLength(5);
  });

  test("have every target, and colour for the verdict alone where it is wanted", () => {
    const judged = judgeTargets(both.measurements);
    const plain = targetTable(judged);
    expect(plain.trimEnd().split("\n")).toHaveLength(judged.length + 1);
    expect(plain).toMatch(
      /missed +whole-32 +CPU per request, over B +at most 1.5 × +1.75 \(1.50–2.00\) × +– +2 {2}2 of 5 rounds/,
    );
    const coloured = targetTable(judged, { coloured: true });
    expect(coloured).toContain("\u001b[31mmissed\u001b[39m ");
    // oxlint-disable-next-line no-control-regex
    expect(coloured.replace(/\u001b\[\d+m/g, "")).toBe(plain);
  });
});

test("a refusal counts as left out of the report as well", () => {
  const refused = measured({ refused: { 503: 2 }, round: 1 });
  expect(markdownReport(resultsOf([refused])).markdown).toContain("requests were refused: 2 with 503");
});
