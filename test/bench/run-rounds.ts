import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../harness/free-port.ts";
import { OwnedChild } from "../harness/owned-child.ts";
import { SeededRandom } from "../harness/seeded-random.ts";
import { until } from "../harness/until.ts";
import type { Measurement } from "./measurement.ts";
import type { Programs } from "./native/build-programs.ts";
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
}

export interface Failure {
  readonly variant: string;
  readonly scenario?: string;
  readonly round: number;
  readonly why: string;
}

/**
 * Goes through all variants in every round, in an order of its own each time and with fresh processes: what changes from
 * one minute to the next changes for all, and what is compared are figures of the same round.
 */
export async function runRounds(options: RoundsOptions): Promise<void> {
  const random = new SeededRandom(options.seed);
  const wanted = options.variants.filter(({ name }) => options.scenarios.some((scenario) => isFor(scenario, name)));
  for (let round = 1; round <= options.rounds; round += 1) {
    for (const [place, variant] of shuffled(wanted, random).entries()) {
      options.say(`round ${round} of ${options.rounds}, ${place + 1} of ${wanted.length}: ${variant.name}`);
      await runOnce(variant, round, options);
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
        const measured = await runLoad(scenario, running, { program: programs.load, folder, quick });
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

async function startFarEnd(program: string, port: number, models: readonly string[]): Promise<OwnedChild> {
  const child = await OwnedChild.start({ binary: program, args: [`${port}`, ...models], environment: {} });
  await until(() => accepts(port), { what: `the far end to listen at ${port}` });
  return child;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const tell = (answers: boolean): void => {
      socket.destroy();
      resolve(answers);
    };
    socket.once("connect", () => tell(true)).once("error", () => tell(false));
  });
}

function shuffled<T>(all: readonly T[], random: SeededRandom): T[] {
  const rest = [...all];
  return all.flatMap(() => rest.splice(random.between(0, rest.length - 1), 1));
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
