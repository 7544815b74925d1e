import { alignedTable } from "../../../services/cli/terminal/table-text.ts";
import type { CpuShare } from "./cpu-use.ts";
import type { Asked } from "./run-sessions.ts";

/** The result of one router in one workload with one seed. */
export interface Result {
  readonly workload: string;
  readonly router: string;
  readonly seed: number;
  readonly requests: number;
  readonly failed: number;
  /** Why the first request that failed did so. */
  readonly why: string;
  /** The share of all prompt tokens that the engines had cached. */
  readonly hitShare: number;
  /** The mean time that requests waited in their engine for the first token. The rest of `firstMs` is the router's. */
  readonly engineFirstMs: number;
  readonly firstMs: number;
  readonly firstP99Ms: number;
  readonly totalP99Ms: number;
  readonly cpu: CpuShare;
}

export function resultOf(
  run: Pick<Result, "workload" | "router" | "seed" | "hitShare" | "engineFirstMs" | "cpu">,
  all: readonly Asked[],
): Result {
  const served = all.filter(({ answer }) => answer !== undefined);
  const firsts = served.map(({ firstMs }) => firstMs);
  return {
    ...run,
    requests: all.length,
    failed: all.length - served.length,
    why: all.find(({ answer }) => answer === undefined)?.why.slice(0, 300) ?? "",
    firstMs: firsts.reduce((sum, each) => sum + each, 0) / Math.max(1, firsts.length),
    firstP99Ms: percentile(firsts, 0.99),
    totalP99Ms: percentile(
      served.map(({ totalMs }) => totalMs),
      0.99,
    ),
  };
}

/** Above this share of all cores the engines' times are no longer the engines' own. */
const cpuShareMax = 0.6;

const numbers = ["hits %", "first ms", "router ms", "first p99", "total p99", "requests", "failed", "CPU %", "host %"];

/** A row for each router in each workload: medians over the seeds, and the greatest use of the CPU. */
export function resultTable(results: readonly Result[]): string {
  const groups = Map.groupBy(results, ({ workload, router }) => `${workload} ${router}`);
  const rows = [...groups.values()].map((group) => {
    const middle = (figure: (result: Result) => number): string => median(group.map(figure)).toFixed(0);
    const most = (figure: (result: Result) => number): number => Math.max(...group.map(figure));
    return [
      group[0]?.workload ?? "",
      group[0]?.router ?? "",
      middle(({ hitShare }) => 100 * hitShare),
      middle(({ firstMs }) => firstMs),
      median(group.map(({ firstMs, engineFirstMs }) => firstMs - engineFirstMs)).toFixed(1),
      middle(({ firstP99Ms }) => firstP99Ms),
      middle(({ totalP99Ms }) => totalP99Ms),
      middle(({ requests }) => requests),
      `${most(({ failed }) => failed)}`,
      (100 * most(({ cpu }) => cpu.bench)).toFixed(0),
      (100 * most(({ cpu }) => cpu.host)).toFixed(0),
      `${group.length}`,
    ];
  });
  return alignedTable(["workload", "router", ...numbers, "seeds"], rows, { right: [...numbers, "seeds"] });
}

/** Returns the use of the CPU in words, and each run with failed requests. */
export function remarks(results: readonly Result[]): readonly string[] {
  const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;
  const most = (figure: keyof CpuShare): string => percent(Math.max(0, ...results.map(({ cpu }) => cpu[figure])));
  const busy = results.filter(({ cpu }) => cpu.host > cpuShareMax).length;
  return [
    `The bench used at most ${most("bench")} of the CPU, and the host ${most("host")}.`,
    ...(busy > 0
      ? [
          `In ${busy} of ${results.length} runs the host used more than ${percent(cpuShareMax)}: their times may be too long.`,
        ]
      : []),
    ...results.flatMap(({ workload, router, seed, requests, failed, why }) =>
      failed > 0 ? [`${workload}, ${router}, seed ${seed}: ${failed} of ${requests} failed; the first: ${why}`] : [],
    ),
  ];
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.slice(Math.ceil(sorted.length / 2) - 1, Math.floor(sorted.length / 2) + 1);
  return middle.reduce((sum, value) => sum + value, 0) / middle.length;
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
