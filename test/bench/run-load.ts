import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Measurement, Spread } from "./measurement.ts";
import { bodyOf, neighbourModel, planOf, type LoadPlan, type Scenario } from "./scenarios.ts";
import type { RunningVariant } from "./variants/variant.ts";

/** What the load generator prints. */
interface Told {
  readonly windowS: number;
  readonly requests: number;
  readonly chunks: number;
  readonly bad: number;
  readonly firstBad: string;
  readonly statuses: Readonly<Record<string, number>>;
  readonly stealShare: number;
  readonly cpuUs: Readonly<Record<string, number>>;
  readonly rssKb: Readonly<Record<string, { readonly before: number; readonly after: number }>>;
  readonly total?: Spread;
  readonly firstByte?: Spread;
  readonly oneWay?: Spread & { readonly max: number };
  readonly refusedTotal?: Spread;
}

export interface LoadMeans {
  /** The load generator. */
  readonly program: string;
  /** For the bodies of requests. */
  readonly folder: string;
  readonly quick: boolean;
}

/** Puts a variant that is up under the load of one scenario, once. */
export async function runLoad(
  scenario: Scenario,
  running: RunningVariant,
  means: LoadMeans,
): Promise<Omit<Measurement, "scenario" | "variant" | "round">> {
  const plan = planOf(scenario, means);
  const [told, neighbour] = await Promise.all([
    load(scenario, plan, running, means),
    scenario.neighbour === true ? besideIt(plan, running, means) : undefined,
  ]);
  const { statuses, windowS, ...rest } = told;
  const { 200: _served, ...refused } = statuses;
  return {
    ...rest,
    windowS,
    refused,
    ...(plan.offeredChunks !== undefined && {
      offeredChunks: (plan.offeredChunks * windowS * 1_000) / plan.windowMs,
    }),
    ...(neighbour?.oneWay && { figures: { neighbourHeldUpMs: neighbour.oneWay.max / 1_000 } }),
  };
}

async function load(scenario: Scenario, plan: LoadPlan, running: RunningVariant, means: LoadMeans): Promise<Told> {
  const { connections, rampMs, warmMs, warmRequests, windowMs, finishMs, chunks, rate, once } = plan;
  const keys = scenario.freshKeys === true ? running.freshKeys?.map((key) => `${key}\n`).join("") : undefined;
  return run(means.program, {
    ...askingOf(keys === undefined ? running : { ...running, headers: {} }),
    tokens: await written(keys, join(means.folder, "keys")),
    body: await written(bodyOf(scenario, plan), join(means.folder, `${scenario.name}.json`)),
    path: scenario.path,
    connections,
    "ramp-ms": rampMs,
    // Each gateway has to become as warm as one alone would.
    "warm-ms": warmMs * running.ports.length,
    "warm-requests": warmRequests * running.ports.length,
    "window-ms": windowMs,
    "finish-ms": finishMs,
    stream: chunks,
    rate,
    once,
    process: running.processes.map(({ name, pid }) => `${name}=${pid}`),
  });
}

async function besideIt(plan: LoadPlan, running: RunningVariant, means: LoadMeans): Promise<Told> {
  const body = JSON.stringify({ model: neighbourModel, messages: [{ role: "user", content: "Hello" }], stream: true });
  return run(means.program, {
    ...askingOf(running),
    body: await written(body, join(means.folder, "neighbour.json")),
    "warm-ms": plan.warmMs,
    "window-ms": plan.windowMs,
    stream: 4_000,
  });
}

type Options = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

function askingOf({ ports, headers }: RunningVariant): Options {
  return { port: ports.join(","), header: Object.entries(headers).map(([name, value]) => `${name}: ${value}`) };
}

async function written(body: string | undefined, file: string): Promise<string | undefined> {
  if (body === undefined) return undefined;
  await writeFile(file, body);
  return file;
}

async function run(program: string, options: Options): Promise<Told> {
  const words = Object.entries(options).flatMap(([name, value]) => {
    if (value === undefined || value === false) return [];
    if (value === true) return [`--${name}`];
    return [value].flat().flatMap((each) => [`--${name}`, `${each}`]);
  });
  const { stdout } = await promisify(execFile)(program, words);
  return JSON.parse(stdout) as Told;
}
