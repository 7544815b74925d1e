import { Command, InvalidArgumentError } from "commander";
import { exitCodes } from "#shared/process/start-failure.ts";
import { CannotMeasure } from "./native/build-programs.ts";
import { checkBounds, readCommittedBounds } from "./report/bounds.ts";
import { featureTable } from "./report/feature-costs.ts";
import { judgeTargets } from "./report/judge-targets.ts";
import { ratioTable } from "./report/ratio-table.ts";
import { readResults, type BenchResults } from "./report/results.ts";
import { boundsTable, targetTable } from "./report/target-table.ts";
import { writeReport } from "./report/write-report.ts";
import { allNames, runBench, whatThereIs } from "./run-bench.ts";

interface Options {
  readonly only: readonly string[];
  readonly rounds?: number;
  readonly quick: boolean;
  readonly check: boolean;
  readonly soak: number;
  readonly out: string;
  readonly again?: string;
  readonly seed: number;
}

const program = new Command("npm run bench --")
  .description("Measures Trunkline beside what people would use in its place, in rounds of fresh processes.")
  .option("--only <names>", "scenarios and variants, with commas between; see below", readNames, [])
  .option(
    "--rounds <count>",
    "rounds that medians are made of (default: 5, quick 2, none with --soak alone)",
    wholeNumber,
  )
  .option("--quick", "the most telling part of it, in less than a minute", false)
  .option("--check", "fail when a ratio is twice what is committed in committed-bounds.json", false)
  .option("--soak <minutes>", "ordinary traffic for so long, after the rounds", wholeNumber, 0)
  .option("--out <folder>", "where the report goes: report.md, its plots, results.json", "bench-report")
  .option("--again <results.json>", "make the report of an earlier run again")
  .option("--seed <number>", "the order of the variants in each round hangs on it", wholeNumber, 7)
  .addHelpText("after", () => `\nScenarios and variants:\n${whatThereIs()}`);

const options = program.parse().opts<Options>();
const coloured = process.stdout.isTTY && !process.env["NO_COLOR"];
try {
  const results = await resultsOf(options);
  await writeReport(results, options.out);
  tell(results, options);
  if (options.check) await hold(results);
  console.log(`The whole report is in ${options.out}/report.md`);
} catch (error) {
  if (!(error instanceof CannotMeasure)) throw error;
  console.error(error.message);
  // Who holds a change against what is committed does not ask what its machine has.
  process.exitCode = options.check ? 0 : exitCodes.unavailable;
}

function resultsOf({ again, rounds, ...wish }: Options): Promise<BenchResults> {
  if (again !== undefined) return readResults(again);
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  const keep = (results: BenchResults): Promise<void> => writeReport(results, wish.out);
  const enough = new AbortController();
  process.once("SIGINT", () => {
    say("Stops behind this start, with a report of what there is; once more ends it at once.");
    enough.abort();
  });
  const means = { soakMinutes: wish.soak, say, keep, enough: enough.signal };
  return runBench({ ...wish, rounds: rounds ?? usualRounds(wish), ...means });
}

function usualRounds({ quick, soak, only }: Options): number {
  if (soak > 0 && only.length === 0) return 0;
  return quick ? 2 : 5;
}

function tell({ scenarios, variants, measurements }: BenchResults, { quick }: Options): void {
  console.log(ratioTable({ scenarios, variants, measurements }));
  const features = featureTable({ scenarios, variants, measurements });
  if (features !== "") console.log(features);
  const judged = judgeTargets(measurements);
  const told = quick ? judged.filter(({ verdict }) => verdict !== "not measured") : judged;
  console.log(targetTable(told, { coloured }));
}

/** Fails on a doubling only: a shared machine makes every figure uncertain, but none twice as large. */
async function hold({ measurements }: BenchResults): Promise<void> {
  const check = checkBounds(judgeTargets(measurements), await readCommittedBounds());
  console.log(boundsTable(check, { coloured }));
  if (!check.passes) process.exitCode = 1;
}

function readNames(text: string): readonly string[] {
  const names = text.split(",").filter((name) => name !== "");
  const unknown = names.filter((name) => !allNames().includes(name));
  if (unknown.length === 0) return names;
  throw new InvalidArgumentError(`There is no ${unknown.join(", no ")}; --help lists what there is.`);
}

function wholeNumber(text: string): number {
  const number = Number(text);
  if (Number.isInteger(number) && number >= 0) return number;
  throw new InvalidArgumentError("It must be a whole number.");
}
