import { describe, test } from "vitest";
import { lentOnly } from "../harness/found-servers.ts";
import { lane } from "./lane.ts";
import { runScenario, type Measured } from "./run-scenario.ts";
import type { Scenario } from "./scenario.ts";

declare module "vitest" {
  interface TaskMeta {
    /** What a scenario came to, for the table. */
    scenario?: { rows: readonly number[]; guarantee: string; seed: number } & Partial<Measured>;
  }
}

/** A fleet is started, everything that may be waited for is, and it is ended. */
const timeoutMs = 90_000;

/** One test for each scenario that this lane has, and one for each seed where chance plays a part in it. */
export function testScenarios(title: string, scenarios: readonly Scenario[]): void {
  const { isWhole, scale, seeds, rows } = lane;
  const chosen = scenarios.filter(
    (scenario) =>
      (isWhole || scenario.fast === true) && (rows === undefined || scenario.rows.some((row) => rows.includes(row))),
  );
  const played = chosen.flatMap((scenario) =>
    seeds.slice(0, hangsOnChance(scenario) ? seeds.length : 1).map((seed) => ({ ...scenario, seed })),
  );

  describe.skipIf(lentOnly("nats", "redis") || played.length === 0)(title, () => {
    for (const { seed, ...scenario } of played) {
      const numbers = scenario.rows.length === 0 ? "" : `${scenario.rows.join(", ")}: `;
      const name = `${numbers}${scenario.guarantee}${seeds.length > 1 ? ` (seed ${seed})` : ""}`;
      test(name, { timeout: timeoutMs }, async ({ task }) => {
        const told = { rows: scenario.rows, guarantee: scenario.guarantee, seed };
        task.meta.scenario = told;
        task.meta.scenario = { ...told, ...(await runScenario(scenario, { seed, scale })) };
      });
    }
  });
}

function hangsOnChance({ chance, asks = [] }: Scenario): boolean {
  return chance === true || asks.some(({ phase }) => phase === "P4");
}
