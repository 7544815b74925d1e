import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../harness/free-port.ts";
import { SeededRandom } from "../harness/seeded-random.ts";
import { startFarEnd } from "./far-end.ts";
import type { Measurement } from "./measurement.ts";
import type { Programs } from "./native/build-programs.ts";
import { stealShareMax } from "./over-rounds.ts";
import { runLoad } from "./run-load.ts";
import { modelsOf, type Scenario } from "./scenarios.ts";
import type { Variant } from "./variants/variant.ts";

/** A window that the host disturbed is measured again, at most so often; the quick bench has no time for it. */
const repeatsMax = { quick: 0, whole: 2 };

interface BenchOptions {
  readonly programs: Programs;
  readonly scenarios: readonly Scenario[];
  readonly variants: readonly Variant[];
  readonly rounds: number;
  readonly quick: boolean;
  readonly say: (line: string) => void;
}

/**
 * Runs all variants in every round, in a new order each time and with fresh processes: a machine that slows down from one
 * minute to the next slows all of them, and only figures of the same round are compared.
 */
export async function runBench(options: BenchOptions): Promise<readonly Measurement[]> {
  const { variants, rounds, say } = options;
  const random = new SeededRandom(7);
  const measurements: Measurement[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    const rest = [...variants];
    while (rest.length > 0) {
      const [variant] = rest.splice(random.between(0, rest.length - 1), 1);
      if (variant === undefined) break;
      say(`round ${round} of ${rounds}: ${variant.name}`);
      measurements.push(...(await runVariant(variant, round, options)));
    }
  }
  return measurements;
}

async function runVariant(
  variant: Variant,
  round: number,
  { programs, scenarios, quick, say }: BenchOptions,
): Promise<readonly Measurement[]> {
  const folder = await mkdtemp(join(tmpdir(), "trunkline-bench-"));
  const measurements: Measurement[] = [];
  try {
    const farEndPort = await freePort();
    await using _farEnd = await startFarEnd(programs.farEnd, farEndPort, modelsOf(scenarios, { quick }));
    await using running = await variant.start({ farEndPort, folder });
    for (const scenario of scenarios.filter(({ name }) => variant.scenarios?.includes(name) ?? true)) {
      const measure = () => runLoad(scenario, running, { program: programs.load, folder, quick });
      let measured = await measure();
      const repeats = quick ? repeatsMax.quick : repeatsMax.whole;
      for (let again = 0; again < repeats && measured.stealShare > stealShareMax; again += 1) {
        const next = await measure();
        if (next.stealShare < measured.stealShare) measured = next;
      }
      measurements.push({ ...measured, scenario: scenario.name, variant: variant.name, round });
    }
  } catch (error) {
    say(`${variant.name} failed in round ${round}: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return measurements;
}
