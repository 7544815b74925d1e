import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Measurement, Spread } from "./measurement.ts";
import { bodyOf, planOf, type Scenario } from "./scenarios.ts";
import type { RunningVariant } from "./variants/variant.ts";

/** The JSON line of the load generator. */
interface Load extends Omit<Measurement, "scenario" | "variant" | "round" | "refused"> {
  readonly statuses: Readonly<Record<string, number>>;
  readonly oneWay?: Spread;
}

/** Puts a running variant under the load of one scenario, once. */
export async function runLoad(
  scenario: Scenario,
  running: RunningVariant,
  { program, folder, quick }: { readonly program: string; readonly folder: string; readonly quick: boolean },
): Promise<Omit<Measurement, "scenario" | "variant" | "round">> {
  const plan = planOf(scenario, { quick });
  const body = join(folder, `${scenario.name}.json`);
  await writeFile(body, bodyOf(scenario, plan, running.path));
  const options = {
    port: running.port,
    path: running.path,
    header: Object.entries(running.headers).map(([name, value]) => `${name}: ${value}`),
    body,
    connections: plan.connections,
    "ramp-ms": plan.rampMs,
    "warm-ms": plan.warmMs,
    "warm-requests": plan.warmRequests,
    "window-ms": plan.windowMs,
    "finish-ms": plan.finishMs,
    stream: plan.chunks,
    once: plan.once,
    process: running.processes.map(({ name, pid }) => `${name}=${pid}`),
  };
  const words = Object.entries(options).flatMap(([name, value]) => {
    if (value === undefined || value === false) return [];
    if (value === true) return [`--${name}`];
    return [value].flat().flatMap((each) => [`--${name}`, `${each}`]);
  });
  const { stdout } = await promisify(execFile)(program, words);
  const { statuses, ...told } = JSON.parse(stdout) as Load;
  const { 200: _served, ...refused } = statuses;
  const { offeredChunks } = plan;
  const offered =
    offeredChunks === undefined ? {} : { offeredChunks: (offeredChunks * told.windowS * 1_000) / plan.windowMs };
  return { ...told, refused, ...offered };
}
