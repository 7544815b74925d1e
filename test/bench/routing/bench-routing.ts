import { writeFile } from "node:fs/promises";
import { Command } from "commander";
import { SeededRandom } from "../../harness/seeded-random.ts";
import { watchCpu } from "./cpu-use.ts";
import { remarks, type Result, resultOf, resultTable } from "./results.ts";
import { type Router, routers } from "./routers.ts";
import { runSessions } from "./run-sessions.ts";
import { type EngineCounts, startEngines } from "./start-engines.ts";
import { type Workload, workloads } from "./workloads.ts";
import { readAmong, readCount } from "../read-options.ts";

interface Options {
  readonly only: readonly string[];
  readonly seeds: number;
  readonly json: string;
}

const names = [...workloads, ...routers].map(({ name }) => name);
const options = new Command("npm run bench:routing --")
  .description("Compares how routers choose among six simulated engines with prefix caches.")
  .option("--only <names>", "workloads and routers, with commas between", readAmong(names), [])
  .option("--seeds <count>", "medians are made of so many seeds, the same for all routers", readCount, 3)
  .option("--json <file>", "all results are written into this file, after each run", "results.json")
  .addHelpText("after", () => {
    const rows = [...workloads, ...routers].map(({ name, title }) => `  ${name.padEnd(14)}${title}`);
    return `\nWorkloads and routers:\n${rows.join("\n")}`;
  })
  .parse()
  .opts<Options>();

const say = (line: string): void => void process.stderr.write(`${line}\n`);
await run(options);

async function run({ only, seeds, json }: Options): Promise<void> {
  const named = <T extends { readonly name: string }>(all: readonly T[]): readonly T[] => {
    const chosen = all.filter(({ name }) => only.includes(name));
    return chosen.length > 0 ? chosen : all;
  };
  const able: Router[] = [];
  for (const router of named(routers)) {
    const why = await router.missing();
    if (why === undefined) able.push(router);
    else say(`Left out: ${why}`);
  }
  const results: Result[] = [];
  for (let seed = 1; seed <= seeds; seed += 1) {
    for (const workload of named(workloads)) {
      for (const router of able) {
        const result = await runOnce(workload, router, seed).catch((error: unknown) => {
          say(`${workload.name}, ${router.name}, seed ${seed}: not measured: ${String(error)}`);
        });
        if (result === undefined) continue;
        results.push(result);
        say(
          resultTable([result])
            .trimEnd()
            .split("\n")
            .slice(results.length === 1 ? 0 : 1)
            .join("\n"),
        );
        await writeFile(json, JSON.stringify(results, null, 2));
      }
    }
  }
  console.log(`\n${resultTable(results)}`);
  for (const remark of remarks(results)) console.log(remark);
}

/** Runs a workload through a router, with fresh processes and empty caches. */
async function runOnce(workload: Workload, router: Router, seed: number): Promise<Result> {
  const { name, engines: specs, changes = [] } = workload;
  await using engines = await startEngines(specs, seed);
  const isAway = (machine: number): boolean =>
    changes.some((each) => each.machine === machine && each.change === "joins");
  await using running = await router.start(
    engines,
    specs.map((_, machine) => machine).filter((machine) => !isAway(machine)),
  );
  const end = await watchCpu([engines.process, ...running.processes]);
  const before = await engines.counts();
  const timers = changes.map((change) =>
    setTimeout(() => void running.change(change).catch((error: unknown) => say(String(error))), change.atMs),
  );
  const all = await runSessions(workload.sessions(new SeededRandom(seed)), running);
  for (const timer of timers) clearTimeout(timer);
  const cpu = await end();
  const counts = await engines.counts();
  const added = (figure: keyof EngineCounts): number =>
    counts.reduce((sum, each, at) => sum + each[figure] - (before[at]?.[figure] ?? 0), 0);
  const hitShare = added("cachedTokens") / added("promptTokens");
  const engineFirstMs = added("firstMs") / added("begun");
  return resultOf({ workload: name, router: router.name, seed, hitShare, engineFirstMs, cpu }, all);
}
