import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../harness/free-port.ts";
import { allVariants } from "./all-variants.ts";
import { startFarEnd } from "./far-end.ts";
import { liveKbOf, tellingLiveMemory } from "./live-memory.ts";
import type { Measurement } from "./measurement.ts";
import { buildPrograms, type Programs } from "./native/build-programs.ts";
import { measuredGrowths } from "./report/measured-growths.ts";
import { ownVariant } from "./report/own-variant.ts";
import { thisMachine, type BenchResults, type ReportedVariant } from "./report/results.ts";
import { runRounds, type Failure } from "./run-rounds.ts";
import { modelsOf, scenarios as allScenarios } from "./scenarios.ts";
import { soak, soakScenarios } from "./soak.ts";
import { ownServers } from "./variants/own-servers.ts";
import { trunkline } from "./variants/trunkline.ts";
import type { Variant } from "./variants/variant.ts";

export interface BenchWish {
  /** Names of scenarios and of variants; all of them where none is named. */
  readonly only: readonly string[];
  readonly rounds: number;
  readonly quick: boolean;
  readonly seed: number;
  /** Minutes of ordinary traffic for Trunkline, after the rounds. */
  readonly soakMinutes: number;
  readonly say: (line: string) => void;
  /** Is given all that was found out so far after each start, so that what ends early was not for nothing. */
  readonly keep: (results: BenchResults) => Promise<void>;
  /** Stops behind the start that is under way, with what there is by then. */
  readonly enough: AbortSignal;
}

/** What the quick bench is about: what is held against in CI. */
const quickVariants = ["plain-proxy", "bare", "trunkline"];
const quickScenarios = ["whole-32", "paced-500", "burst"];

/** Measures what is wished for, and brings back all that was found out. */
export async function runBench(wish: BenchWish): Promise<BenchResults> {
  const { rounds, quick, seed, soakMinutes, say, enough } = wish;
  const [scenarios, variants] = [named(allScenarios, wish, quickScenarios), named(allVariants, wish, quickVariants)];
  const programs = await buildPrograms(say);
  const reported = await Promise.all(variants.map(described));
  const missing = reported.flatMap(({ name, missing: why }) =>
    why === undefined ? [] : [`${name} is left out: ${why}`],
  );
  for (const line of missing) say(line);
  const able = variants.filter((_, place) => reported[place]?.missing === undefined);

  const measurements: Measurement[] = [];
  const failures: Failure[] = [];
  const onMeasurement = (measurement: Measurement): void => void measurements.push(measurement);
  const onFailure = (failure: Failure): void => {
    failures.push(failure);
    say(`${failure.variant}, ${failure.scenario ?? "start"}: ${failure.why}`);
  };
  const { nats, redis } = await ownServers();
  const soFar = (): BenchResults => ({
    format: 1,
    measuredAt: new Date().toISOString(),
    machine: thisMachine(),
    versions: { Node: process.version, NATS: nats.title, Redis: redis.title },
    settings: { rounds, seed, quick: String(quick), "minutes of soak": soakMinutes },
    scenarios: [...scenarios, ...(soakMinutes === 0 ? [] : soakScenarios(soakMinutes))],
    variants: reported,
    measurements,
    failures,
    growths: measuredGrowths(measurements),
  });
  const onStartOver = (): Promise<void> => wish.keep(soFar());
  const means = { programs, variants: able, scenarios, rounds, quick, seed, say, enough };
  await runRounds({ ...means, onMeasurement, onFailure, onStartOver });
  if (soakMinutes > 0 && !enough.aborted) measurements.push(...(await soakOwn(wish, { programs, able })));
  return soFar();
}

/** Those that were named; where only others were, all that are for every run, or the few of the quick bench. */
function named<T extends { readonly name: string; readonly onlyWhenNamed?: boolean }>(
  all: readonly T[],
  { only, quick }: BenchWish,
  quickOnes: readonly string[],
): readonly T[] {
  const wanted = all.filter(({ name }) => only.includes(name));
  if (wanted.length > 0) return wanted;
  return all.filter(({ name, onlyWhenNamed }) => (quick ? quickOnes.includes(name) : onlyWhenNamed !== true));
}

/** What can be asked for by name. */
export function allNames(): readonly string[] {
  return [...allScenarios, ...allVariants].map(({ name }) => name);
}

/** A line for each scenario and each variant, for who wants to name some. */
export function whatThereIs(): string {
  const rows = [...allScenarios, ...allVariants].map(({ name, title }) => `  ${name.padEnd(22)}${title}`);
  return rows.join("\n");
}

async function described(variant: Variant): Promise<ReportedVariant> {
  const { name, title, rounds } = variant;
  const missing = await variant.missing();
  const version = missing === undefined ? await variant.version() : "";
  return { name, title, version, ...(rounds !== undefined && { rounds }), ...(missing !== undefined && { missing }) };
}

async function soakOwn(
  { soakMinutes: minutes, say }: BenchWish,
  { programs, able }: { programs: Programs; able: readonly Variant[] },
): Promise<readonly Measurement[]> {
  if (!able.some(({ name }) => name === ownVariant)) return [];
  say(`soak of ${minutes} minutes: ${ownVariant}`);
  const folder = await mkdtemp(join(tmpdir(), "trunkline-bench-"));
  try {
    const farEndPort = await freePort();
    const models = modelsOf(soakScenarios(minutes), { quick: false });
    await using farEnd = await startFarEnd(programs.farEnd, farEndPort, models);
    void farEnd;
    const telling = tellingLiveMemory(folder);
    await using running = await trunkline({ gatewayEnv: telling, agentEnv: telling }).start({ farEndPort, folder });
    const { measurements } = await soak(running, {
      program: programs.load,
      folder,
      quick: false,
      minutes,
      liveKbOf: ({ pid }) => liveKbOf(pid, folder),
    });
    return measurements.map((measured) => ({ ...measured, variant: ownVariant }));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
