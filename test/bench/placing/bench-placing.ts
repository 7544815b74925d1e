import { Command } from "commander";
import { alignedTable } from "../../../services/cli/terminal/table-text.ts";
import { fleets } from "./fleets.ts";
import { type FleetResult, policies, simulateFleet } from "./simulate-fleet.ts";
import { readAmong, readCount } from "../read-options.ts";

const names = [...fleets, ...policies].map(({ name }) => name);
const { only, seeds } = new Command("npm run bench:placing --")
  .description("Compares in simulated time where models are loaded, by the policies of others and by an oracle.")
  .option("--only <names>", "fleets and policies, with commas between", readAmong(names), [])
  .option("--seeds <count>", "means are made of so many seeds, the same for all policies", readCount, 3)
  .addHelpText("after", () => {
    const rows = [...fleets, ...policies].map(({ name, title }) => `  ${name.padEnd(14)}${title}`);
    return `\nFleets and policies:\n${rows.join("\n")}`;
  })
  .parse()
  .opts<{ only: readonly string[]; seeds: number }>();

const headings = [
  "fleet",
  "policy",
  "mean first",
  "p99",
  "worst",
  "of today",
  "of oracle",
  "loads",
  "swaps",
  "lost",
] as const;
const right = ["mean first", "p99", "worst", "of today", "of oracle", "loads", "swaps", "lost"] as const;
const chosen = <T extends { readonly name: string }>(all: readonly T[]): readonly T[] => {
  const named = all.filter(({ name }) => only.includes(name));
  return named.length > 0 ? named : all;
};

const rows: string[][] = [];
for (const fleet of chosen(fleets)) {
  const results = new Map<string, FleetResult>();
  for (const policy of chosen(policies)) {
    const runs: FleetResult[] = [];
    for (let seed = 1; seed <= seeds; seed += 1) runs.push(await simulateFleet(fleet, policy, seed));
    const mean = (of: (result: FleetResult) => number): number =>
      runs.reduce((sum, run) => sum + of(run), 0) / runs.length;
    results.set(policy.name, {
      requests: mean(({ requests }) => requests),
      meanFirstMs: mean(({ meanFirstMs }) => meanFirstMs),
      p99FirstMs: mean(({ p99FirstMs }) => p99FirstMs),
      worstFirstMs: Math.max(...runs.map(({ worstFirstMs }) => worstFirstMs)),
      loads: mean(({ loads }) => loads),
      swaps: mean(({ swaps }) => swaps),
      lost: mean(({ lost }) => lost),
    });
    process.stderr.write(`${fleet.name}, ${policy.name}: ${JSON.stringify(results.get(policy.name))}\n`);
  }
  for (const [policy, result] of results) {
    const times = (of: string): string => {
      const other = results.get(of);
      return other === undefined ? "-" : (result.meanFirstMs / other.meanFirstMs).toFixed(2);
    };
    const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
    rows.push([
      fleet.name,
      policy,
      seconds(result.meanFirstMs),
      seconds(result.p99FirstMs),
      seconds(result.worstFirstMs),
      times("today"),
      times("oracle"),
      result.loads.toFixed(0),
      result.swaps.toFixed(0),
      result.lost.toFixed(0),
    ]);
  }
}
console.log(alignedTable(headings, rows, { right }));
