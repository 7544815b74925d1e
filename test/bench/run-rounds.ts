import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../harness/free-port.ts";
import { SeededRandom } from "../harness/seeded-random.ts";
import { startFarEnd } from "./far-end.ts";
import type { Measurement } from "./measurement.ts";
import type { Programs } from "./native/build-programs.ts";
import { stealShareMax } from "./report/over-rounds.ts";
import { runLoad } from "./run-load.ts";
import { isFor, modelsOf, type Scenario } from "./scenarios.ts";
import type { Variant } from "./variants/variant.ts";

interface RoundsOptions {
  readonly programs: Programs;
  readonly variants: readonly Variant[];
  readonly scenarios: readonly Scenario[];
  readonly rounds: number;
  readonly quick: boolean;
  /** The order of the variants in each round hangs on it. */
  readonly seed: number;
  readonly say: (line: string) => void;
  readonly onMeasurement: (measurement: Measurement) => void;
  /** A start or a window that came to nothing. */
  readonly onFailure: (failure: Failure) => void;
  readonly onStartOver: () => Promise<void>;
  readonly enough: AbortSignal;
}

export interface Failure {
  readonly variant: string;
  readonly scenario?: string;
  readonly round: number;
  readonly why: string;
}

/** So often a window is measured again. */
const againMax = 2;

/**
 * Goes through all variants in every round, in an order of its own each time and with fresh processes: what changes from
 * one minute to the next changes for all, and what is compared are figures of the same round.
 */
export async function runRounds(options: RoundsOptions): Promise<void> {
  const random = new SeededRandom(options.seed);
  const asked = options.variants.filter(({ name }) => options.scenarios.some((scenario) => isFor(scenario, name)));
  for (let round = 1; round <= options.rounds; round += 1) {
    const wanted = asked.filter(({ rounds = Infinity }) => round <= rounds);
    for (const [place, variant] of shuffled(wanted, random).entries()) {
      if (options.enough.aborted) return;
      options.say(`round ${round} of ${options.rounds}, ${place + 1} of ${wanted.length}: ${variant.name}`);
      await runOnce(variant, round, options);
      await options.onStartOver();
    }
  }
}

async function runOnce(variant: Variant, round: number, options: RoundsOptions): Promise<void> {
  const { programs, quick, onMeasurement, onFailure } = options;
  const mine = options.scenarios.filter((scenario) => isFor(scenario, variant.name));
  const folder = await mkdtemp(join(tmpdir(), "trunkline-bench-"));
  try {
    const farEndPort = await freePort();
    await using farEnd = await startFarEnd(programs.farEnd, farEndPort, modelsOf(options.scenarios, { quick }));
    void farEnd;
    await using running = await variant.start({ farEndPort, folder });
    for (const scenario of mine) {
      try {
        const means = { program: programs.load, folder, quick };
        const measured = await leastDisturbed(() => runLoad(scenario, running, means), quick ? 0 : againMax);
        onMeasurement({ scenario: scenario.name, variant: variant.name, round, ...measured });
      } catch (error) {
        onFailure({ variant: variant.name, scenario: scenario.name, round, why: reasonOf(error) });
      }
    }
  } catch (error) {
    onFailure({ variant: variant.name, round, why: reasonOf(error) });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** A window in which the host gave much time to others is measured again, and the one that it disturbed least counts. */
async function leastDisturbed<Window extends { readonly stealShare: number }>(
  measure: () => Promise<Window>,
  times: number,
): Promise<Window> {
  let best = await measure();
  for (let again = 0; again < times && best.stealShare > stealShareMax; again += 1) {
    const next = await measure();
    if (next.stealShare < best.stealShare) best = next;
  }
  return best;
}

function shuffled<T>(all: readonly T[], random: SeededRandom): T[] {
  const rest = [...all];
  return all.flatMap(() => rest.splice(random.between(0, rest.length - 1), 1));
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
