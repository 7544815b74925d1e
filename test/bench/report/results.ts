import { readFile } from "node:fs/promises";
import { arch, cpus, release, totalmem, type } from "node:os";
import type { Measurement } from "../measurement.ts";
import type { Failure } from "../run-rounds.ts";
import type { CountedScenario } from "./cost.ts";
import type { Growth } from "./growth.ts";

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly kernel: string;
}

export interface ReportedVariant {
  readonly name: string;
  readonly title: string;
  readonly version: string;
  /** It took part in so many rounds, the first ones; in all of them unless told. */
  readonly rounds?: number;
  /** Why it did not run. */
  readonly missing?: string;
}

/** Everything that a run found out; a report is made of it alone. */
export interface BenchResults {
  readonly format: 1;
  /** When the run ended, as ISO 8601. */
  readonly measuredAt: string;
  readonly machine: Machine;
  /** Of what runs everywhere: Node, nats-server, Redis, the compiler. */
  readonly versions: Readonly<Record<string, string>>;
  /** As they are to be told: rounds, seconds of a window, and what was asked for. */
  readonly settings: Readonly<Record<string, string | number>>;
  readonly scenarios: readonly CountedScenario[];
  readonly variants: readonly ReportedVariant[];
  readonly measurements: readonly Measurement[];
  /** Starts and windows that came to nothing. */
  readonly failures: readonly Failure[];
  readonly growths: readonly Growth[];
}

/** What this machine is, and not whose: no name of a host is told. */
export function thisMachine(): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    kernel: `${type()} ${release()} ${arch()}`,
  };
}

/** Reads what an earlier run wrote, for its report to be made again. */
export async function readResults(file: string): Promise<BenchResults> {
  const read = JSON.parse(await readFile(file, "utf8")) as Partial<BenchResults> | null;
  if (read?.format !== 1 || !Array.isArray(read.measurements)) {
    throw new Error(`${file} holds no results of the bench, or those of another format`);
  }
  return read as BenchResults;
}
