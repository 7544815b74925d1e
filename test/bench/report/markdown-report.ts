import {
  comparedFigures,
  cpuFigure,
  deliveredFigure,
  latencyFigure,
  latencyTitles,
  memoryFigure,
  rateFigure,
  type ComparedFigure,
} from "./compared-figures.ts";
import {
  costByKind,
  countUnitOf,
  grownKb,
  kindOf,
  processCost,
  type CountedScenario,
  type LatencyName,
} from "./cost.ts";
import { featureCosts } from "./feature-costs.ts";
import { figureText, noFigure, spreadText } from "./figure-text.ts";
import { judgeGrowth } from "./growth.ts";
import { judgeTargets, roundsMin, type JudgedTarget } from "./judge-targets.ts";
import { comparisonsOf, lossesOf, type Comparison } from "./losses.ts";
import type { Failure } from "../run-rounds.ts";
import { escapedCell, markdownTable } from "./markdown-table.ts";
import { leftOutOf, overRounds, stealShareMax, type LeftOut, type RoundSpread } from "./over-rounds.ts";
import { isOwn, ownVariant } from "./own-variant.ts";
import { pairedRatios } from "./paired-ratios.ts";
import { costPlot, growthPlots, latencyPlot, type Plot } from "./plots.ts";
import type { BenchResults } from "./results.ts";
import { floorText, measuredText } from "./target-table.ts";
import { boundText } from "./targets.ts";

export interface Report {
  readonly markdown: string;
  readonly plots: readonly Plot[];
}

/** All of a run for people: what was held against targets, every scenario, and where Trunkline is worse than others. */
export function markdownReport(results: BenchResults): Report {
  const latencies = (Object.keys(latencyTitles) as LatencyName[]).flatMap((name) => latencyPlot(results, name) ?? []);
  const growths = growthPlots(results);
  const scenarios = results.scenarios
    .filter(({ name }) => results.measurements.some(({ scenario }) => scenario === name))
    .map((scenario) => ({ scenario, plot: costPlot(results, scenario) }));
  const sections = [
    "# Trunkline beside its peers\n\nMade by `npm run bench`; nothing in it was written by hand.\n",
    surroundings(results),
    targetSection(judgeTargets(results.measurements)),
    growthSection(results, growths),
    featureSection(results),
    `## Scenarios\n\n${howToRead}\n`,
    ...scenarios.map(({ scenario, plot }) => scenarioSection(results, scenario, plot)),
    latencies.length === 0 ? "" : `## Latencies\n\n${latencies.map(embedded).join("\n")}`,
    lossSection(comparisonsOf(results)),
    leftOutSection(results),
  ];
  const plots = [...growths, ...scenarios.flatMap(({ plot }) => plot ?? []), ...latencies];
  return { markdown: sections.filter((section) => section !== "").join("\n"), plots };
}

const howToRead = `CPU is that of all processes between client and runtime, in µs by request or chunk: the verdict where cores are shared.
Figures are medians over rounds, with the least and the most. Ratios are made within a round, as what the machine can do
changes between rounds; below 1 is better than the other, but for what comes per second and what is delivered.`;

function surroundings({ measuredAt, machine, versions, settings, variants }: BenchResults): string {
  const { cpu, cores, memoryGb, kernel } = machine;
  const facts = [
    ["measured", measuredAt],
    ["machine", `${cpu}, ${cores} cores, ${memoryGb} GB, ${kernel}`],
    ...Object.entries(versions),
    ...Object.entries(settings).map(([name, value]) => [name, String(value)]),
  ].map(([name = "", value = ""]) => `- ${name}: ${escapedCell(value)}\n`);
  const rows = variants.map(({ name, title, version, missing }) => [
    name,
    title,
    missing === undefined ? version : `not run: ${missing}`,
  ]);
  return `${facts.join("")}\n${markdownTable(["variant", "what it is", "version"], rows)}`;
}

function targetSection(judged: readonly JudgedTarget[]): string {
  const count = (verdict: JudgedTarget["verdict"]): number => judged.filter((one) => one.verdict === verdict).length;
  const rows = judged.map((one) => {
    const { scenario, measure, aim, prototype } = one.target;
    return [
      scenario,
      measure,
      boundText(one.target),
      measuredText(one),
      floorText(one),
      String(one.rounds),
      one.verdict === "missed" ? "**missed**" : one.verdict,
      [
        ...(one.why === undefined ? [] : [one.why]),
        ...(aim === undefined ? [] : [`aim ${figureText(aim)}`]),
        ...(prototype === undefined ? [] : [`prototype ${figureText(prototype)}`]),
      ].join("; "),
    ];
  });
  const headings = ["scenario", "measure", "bound", "measured", "B itself", "rounds", "verdict", "note"];
  return `## Targets

${count("met")} met, ${count("missed")} missed, ${count("not measured")} not measured. F is \`plain-proxy\`, B \`bare\`, M \`musistudio\`, P \`portkey\`. Each verdict is
asked of ${roundsMin} rounds, but for the soak's. How often Redis is asked before the first byte of a warm request (never
without limits, once with them) is counted by a test: \`test/integration/a-request-asks-redis-seldom.test.ts\`. Beside each bound stands
what B itself reaches: it misses ${judged.filter(({ floor }) => floor?.isBeyond).length} of them, which is hardly to be asked of what is built on it. An aim is what is wished for beyond the bound; a prototype's figure is what one reached that had none of the features.

${markdownTable(headings, rows, { right: ["B itself", "rounds"] })}`;
}

function growthSection({ growths }: BenchResults, plots: readonly Plot[]): string {
  if (growths.length === 0) return "";
  const rows = growths.flatMap((growth) =>
    growth.series.map((series) => {
      const verdict = judgeGrowth(series, growth.counts);
      const told =
        verdict === undefined
          ? [noFigure, noFigure, "too few points"]
          : [
              figureText(verdict.exponent),
              figureText(verdict.lastExponent),
              verdict.isLinearOrBetter ? "linear or better" : "**worse than linear**",
            ];
      return [growth.title, series.name, ...told];
    }),
  );
  const headings = ["growth", "series", "power", "power at the end", "verdict"];
  return `## Growth

The cost of all grows as the number to this power: 1 is linear, less is better. Fitted over all points, and over the last two alone.

${markdownTable(headings, rows, { right: ["power", "power at the end"] })}
${plots.map(embedded).join("\n")}`;
}

function featureSection(results: BenchResults): string {
  const costs = featureCosts(results);
  if (costs === undefined) return "";
  return `## What features cost

How much more CPU all processes take with everything switched on than without the one feature, within rounds. What is
less than the rounds differ by is not to be told from nothing. The number in each frame cannot be switched off.

${markdownTable(costs.headings, costs.rows, { right: costs.headings.slice(1) })}`;
}

function scenarioSection(results: BenchResults, scenario: CountedScenario, plot: Plot | undefined): string {
  return [
    `### ${scenario.title}\n`,
    `\`${scenario.name}\`\n`,
    ...(plot === undefined ? [] : [embedded(plot)]),
    measuredTable(results, scenario),
    ratiosOf(results, scenario),
    ownFigures(results, scenario),
    notFor(scenario),
  ]
    .filter((part) => part !== "")
    .join("\n");
}

interface Column {
  readonly heading: string;
  readonly cell: (variant: string) => string;
}

/** A line for each variant. Columns that nobody has a figure for are left out. */
function measuredTable({ variants, measurements }: BenchResults, scenario: CountedScenario): string {
  const medianOf = (variant: string, figure: ComparedFigure): RoundSpread | undefined =>
    overRounds(measurements, [{ scenario: scenario.name, variant }], (one) => one && figure.of(one)).spread;
  const column = (heading: string, figure: ComparedFigure, scale = 1): Column => ({
    heading,
    cell: (variant) => {
      const spread = medianOf(variant, figure);
      return spread === undefined ? noFigure : figureText(spread.median * scale);
    },
  });
  const times = (Object.keys(latencyTitles) as LatencyName[]).map((latency): Column => ({
    heading: `${latencyTitles[latency]} p50 / p99, ms`,
    cell: (variant) => {
      const [p50, p99] = (["p50", "p99"] as const).map((each) => medianOf(variant, latencyFigure(latency, each)));
      return p50 === undefined || p99 === undefined
        ? noFigure
        : `${figureText(p50.median / 1_000)} / ${figureText(p99.median / 1_000)}`;
    },
  }));
  const unit = countUnitOf(scenario);
  const cpu = cpuFigure(scenario);
  const cost: Column = {
    heading: `${cpu.name}, µs`,
    cell: (variant) => {
      const spread = medianOf(variant, cpu);
      return spread === undefined ? noFigure : spreadText(spread);
    },
  };
  const ours = variants.filter(({ name }) =>
    measurements.some((one) => one.scenario === scenario.name && one.variant === name),
  );
  const columns = [
    ...(unit === "second" ? [] : [column(rateFigure(scenario).name, rateFigure(scenario))]),
    column(deliveredFigure.name, deliveredFigure),
    cost,
    { heading: "by process, µs", cell: (variant: string) => byProcess(measurements, scenario, variant) },
    ...(unit === "second" ? [] : times),
    column("resident, MB", memoryFigure, 1 / 1_024),
    memoryColumn(measurements, scenario),
  ].filter(({ cell }) => ours.some(({ name }) => cell(name) !== noFigure));
  const rows = ours.map(({ name }) => {
    const { rounds } = overRounds(measurements, [{ scenario: scenario.name, variant: name }], () => 0);
    return [name === ownVariant ? `**${name}**` : name, ...columns.map(({ cell }) => cell(name)), String(rounds)];
  });
  const headings = ["variant", ...columns.map(({ heading }) => heading), "rounds"];
  return markdownTable(headings, rows, { right: headings.filter((heading) => !/^variant|by process/.test(heading)) });
}

function byProcess(measurements: BenchResults["measurements"], scenario: CountedScenario, variant: string): string {
  const window = { scenario: scenario.name, variant };
  const ours = measurements.filter((one) => one.scenario === scenario.name && one.variant === variant);
  const unit = countUnitOf(scenario);
  const kinds = [...new Set(ours.flatMap((one) => [...costByKind(one, unit).keys()]))];
  const parts = kinds.flatMap((kind) => {
    const { spread } = overRounds(measurements, [window], (one) => one && processCost(one, unit, kind));
    return spread === undefined ? [] : [`${kind} ${figureText(spread.median)}`];
  });
  return parts.length < 2 ? noFigure : parts.join(", ");
}

/** Trunkline over each of the others, within rounds. */
function ratiosOf({ variants, measurements }: BenchResults, scenario: CountedScenario): string {
  const figures = comparedFigures(scenario, measurements);
  const rows = variants
    .filter(({ name }) => !isOwn(name))
    .flatMap(({ name: baseline }) => {
      const cells = figures.map((figure) => {
        const pair = { scenario: scenario.name, variant: ownVariant, baseline, figure: figure.of };
        return pairedRatios(measurements, pair).spread;
      });
      return cells.some((spread) => spread !== undefined) ? [{ baseline, cells }] : [];
    });
  if (rows.length === 0) return "";
  const shown = figures.map((_, at) => rows.some(({ cells }) => cells[at] !== undefined));
  const headings = ["Trunkline over", ...figures.filter((_, at) => shown[at]).map(({ name }) => name)];
  const lines = rows.map(({ baseline, cells }) => [
    baseline,
    ...cells.filter((_, at) => shown[at]).map((spread) => (spread === undefined ? noFigure : spreadText(spread))),
  ]);
  return markdownTable(headings, lines, { right: headings.slice(1) });
}

/** Memory for each of many connections, by process; where there are few, noise is all that would show. */
function memoryColumn(measurements: BenchResults["measurements"], { name, pace }: CountedScenario): Column {
  const connections = pace?.connections ?? 0;
  const cell = (variant: string): string => {
    const ours = measurements.filter((one) => one.scenario === name && one.variant === variant);
    const kinds = [...new Set(ours.flatMap(({ rssKb }) => Object.keys(rssKb).map(kindOf)))];
    const parts = kinds.flatMap((kind) => {
      const { spread } = overRounds(measurements, [{ scenario: name, variant }], (one) => one && grownKb(one, kind));
      return spread === undefined ? [] : [`${kind} ${figureText(spread.median / connections)}`];
    });
    return connections < connectionsMany || parts.length === 0 ? noFigure : parts.join(", ");
  };
  return { heading: "more resident for each connection, KB", cell };
}

const connectionsMany = 500;

function notFor({ not }: CountedScenario): string {
  return not === undefined ? "" : `Not for ${not.variants.join(", ")}: ${escapedCell(not.reason)}.\n`;
}

/** What no load generator sees, and only some windows have. */
function ownFigures({ variants, measurements }: BenchResults, scenario: CountedScenario): string {
  const rows = variants.flatMap(({ name: variant }) => {
    const ours = measurements.filter((one) => one.scenario === scenario.name && one.variant === variant);
    const names = [...new Set(ours.flatMap(({ figures }) => Object.keys(figures ?? {})))];
    return names.flatMap((figure) => {
      const needs = [{ scenario: scenario.name, variant }];
      const { spread } = overRounds(measurements, needs, (one) => one?.figures?.[figure]);
      return spread === undefined ? [] : [[variant, figure, spreadText(spread)]];
    });
  });
  return rows.length === 0 ? "" : markdownTable(["variant", "figure", "measured"], rows, { right: ["measured"] });
}

/** Every figure in which Trunkline is worse than something beside it, by what it is worse than, the worst first. */
function lossSection(compared: readonly Comparison[]): string {
  const losses = lossesOf(compared);
  const others = [...new Set(compared.map(({ against }) => against))];
  const isAgainst = (other: string) => (one: Comparison) => one.against === other;
  const counts = others.map((other) => [
    other,
    String(losses.filter(isAgainst(other)).length),
    String(compared.filter(isAgainst(other)).length),
  ]);
  const tables = others.flatMap((other) => {
    const rows = losses
      .filter(isAgainst(other))
      .map(({ scenario, figure, times, own, other: theirs }) => [
        scenario.title,
        figure.name,
        `${spreadText(times)}${times.min <= 1 ? ", not in every round" : ""}`,
        inUnit(own, figure),
        inUnit(theirs, figure),
      ]);
    const headings = ["scenario", "figure", "times worse", "Trunkline", other];
    return rows.length === 0
      ? []
      : `\n### Worse than ${other}\n\n${markdownTable(headings, rows, { right: headings.slice(2) })}`;
  });
  const counted = ["against", "figures that are worse", "of all compared"];
  return `## Where Trunkline is slower or costlier

Every figure of every scenario in which it is, by half a percent or more.

${markdownTable(counted, counts, { right: counted.slice(1) })}${tables.join("")}`;
}

function inUnit({ median }: RoundSpread, { unit }: ComparedFigure): string {
  if (unit === "KB") return `${figureText(median / 1_024)} MB`;
  return unit === "µs" && median >= 1_000 ? `${figureText(median / 1_000)} ms` : `${figureText(median)} ${unit}`.trim();
}

function leftOutSection({ variants, measurements, failures }: BenchResults): string {
  const roundsOf = new Map(variants.map(({ name, rounds = Infinity }) => [name, rounds]));
  const leftOut = leftOutOf(measurements)
    .filter(({ variant, round }) => round <= (roundsOf.get(variant) ?? Infinity))
    .filter((one) => !failures.some((failure) => isOf(failure, one)));
  const rows = [
    ...failures.map(({ scenario = "all", variant, round, why }) => ({ scenario, variant, round, why })),
    ...leftOut,
  ].map(({ scenario, variant, round, why }) => [scenario, variant, String(round), why]);
  const table = markdownTable(["scenario", "variant", "round", "why"], rows, { right: ["round"] });
  return `## What was left out

A window does not count when answers in it were wrong or refused, or when the host gave more
than ${stealShareMax * 100} % of the time to others. Where the host did so in every round, those rounds count after all,
and each verdict that hangs on them says so.
${rows.length === 0 ? "There was none.\n" : `Beside those that count there were:\n\n${table}`}`;
}

/** A window is missing because of it; a start that failed takes all windows of its round along. */
function isOf({ scenario, variant, round }: Failure, window: LeftOut): boolean {
  return variant === window.variant && round === window.round && (scenario ?? window.scenario) === window.scenario;
}

function embedded({ title, file }: Plot): string {
  return `![${title}](${file})\n`;
}
