import { writeFile } from "node:fs/promises";
import { Command } from "commander";
import { exitCodes } from "#shared/process/lifecycle.ts";
import { measureCommands } from "./command-times.ts";
import { checkGoals, passes } from "./goals.ts";
import { measureLoopHolds } from "./loop-holds.ts";
import { buildPrograms, CannotMeasure } from "./native/build-programs.ts";
import { runBench } from "./run-bench.ts";
import { scenarios as allScenarios } from "./scenarios.ts";
import { goalsTable, loopTable, resultTable } from "./tables.ts";
import { barePipeline } from "./variants/bare-pipeline.ts";
import { peers } from "./variants/peers.ts";
import { messages, traced, trunkline, tunnelled } from "./variants/trunkline.ts";
import type { Variant } from "./variants/variant.ts";
import { readAmong, readCount } from "./read-options.ts";

const allVariants: readonly Variant[] = [barePipeline, trunkline, messages, tunnelled, traced, ...peers];
/** Measures for how long the worst requests hold an event loop. */
const loop = { name: "loop", title: "The longest time that one request holds an event loop; Trunkline only" };
/** Measures how long commands of the command line take. */
const commands = { name: "commands", title: "The time of commands over `node -e 0`; Trunkline only" };

interface Options {
  readonly only: readonly string[];
  readonly rounds?: number;
  readonly quick: boolean;
  readonly check: boolean;
  readonly json?: string;
}

const options = new Command("npm run bench --")
  .description("Measures Trunkline beside a bare pipeline of the same design, in rounds of fresh processes.")
  .option(
    "--only <names>",
    "scenarios and variants, with commas between",
    readAmong([...allScenarios, loop, commands, ...allVariants].map(({ name }) => name)),
    [],
  )
  .option("--rounds <count>", "medians are made of so many rounds (default: 5, with --quick 3)", readCount)
  .option("--quick", "the scenarios that CI checks, in about three minutes", false)
  .option("--check", "exit with 1 when a figure is over twice its goal (test/bench/goals.ts)", false)
  .option("--json <file>", "write all measurements into a file")
  .addHelpText("after", () => {
    const rows = [...allScenarios, loop, commands, ...allVariants].map(
      ({ name, title }) => `  ${name.padEnd(16)}${title}`,
    );
    return `\nScenarios and variants (peers run only when they are named):\n${rows.join("\n")}`;
  })
  .parse()
  .opts<Options>();

const say = (line: string): void => void process.stderr.write(`${line}\n`);
try {
  await run(options);
} catch (error) {
  if (!(error instanceof CannotMeasure)) throw error;
  console.error(error.message);
  // A machine without a C compiler proves nothing about a change.
  process.exitCode = options.check ? 0 : exitCodes.unavailable;
}

async function run({ only, quick, check, json, rounds = quick ? 3 : 5 }: Options): Promise<void> {
  const named = <T extends { readonly name: string }>(all: readonly T[], usual: (each: T) => boolean): readonly T[] => {
    const chosen = all.filter(({ name }) => only.includes(name));
    return chosen.length > 0 ? chosen : all.filter(usual);
  };
  const scenarios =
    only.length > 0 && only.every((name) => [loop.name, commands.name].includes(name))
      ? []
      : named(allScenarios, (each) => !quick || each.quick !== undefined);
  const takesPart = ({ scenarios: own }: Variant): boolean => scenarios.some(({ name }) => own?.includes(name) ?? true);
  const variants = named(
    allVariants,
    (each) => each.onlyWhenNamed !== true && (takesPart(each) || only.includes(loop.name)),
  );
  const missing = await Promise.all(variants.map((variant) => variant.missing()));
  for (const why of missing.filter((each) => each !== undefined)) say(`Left out: ${why}`);
  const able = variants.filter((_, place) => missing[place] === undefined);

  const load = { scenarios, variants: able, rounds, quick, say };
  const measurements = scenarios.length === 0 ? [] : await runBench({ ...load, programs: await buildPrograms(say) });
  const measuresLoop = able.includes(trunkline) && (only.length === 0 || only.includes(loop.name));
  const holds = measuresLoop ? await measureLoopHolds(quick ? 1 : rounds, say) : [];
  const times =
    only.length === 0 || only.includes(commands.name) ? await measureCommands(Math.max(rounds, 9), say) : [];
  if (json !== undefined) await writeFile(json, JSON.stringify({ measurements, holds, times }, null, 2));
  if (measurements.length > 0) console.log(`\n${resultTable(scenarios, measurements)}`);
  if (holds.length > 0) console.log(loopTable(holds));
  const checked = checkGoals(measurements, holds, times);
  const shown = only.length === 0 ? checked : checked.filter(({ measured }) => measured !== undefined);
  if (only.length === 0 || times.length > 0) console.log(goalsTable(shown));
  if (check && !checked.every(passes)) process.exitCode = 1;
}
