import type { Measurement } from "../measurement.ts";

/** What a report has to know of a scenario. */
export interface CountedScenario {
  readonly name: string;
  readonly title: string;
  /** What its costs are divided by. */
  readonly unit: "request" | "chunk";
  readonly pace?: {
    readonly connections: number;
    /** Requests a second; with less than one nothing is asked, and costs are divided by time. */
    readonly rate?: number;
  };
  /** Variants that it is not for, and why. */
  readonly not?: { readonly variants: readonly string[]; readonly reason: string };
  /** Which times say how fast it was; without it `total` of requests, and `oneWay` of chunks. */
  readonly latency?: LatencyName;
}

export type LatencyName = "total" | "firstByte" | "oneWay" | "refusedTotal";

export type CountUnit = CountedScenario["unit"] | "second";

/** What a scenario's costs are divided by. */
export function countUnitOf({ unit, pace }: CountedScenario): CountUnit {
  return pace?.rate !== undefined && pace.rate < 1 ? "second" : unit;
}

/** How many requests or chunks went through in the window; a request that was refused went through too. */
export function unitsOf(measured: Measurement, unit: CountUnit): number {
  if (unit === "second") return measured.windowS;
  return unit === "chunk" ? measured.chunks : measured.requests + refusalsOf(measured);
}

export function refusalsOf({ refused }: Measurement): number {
  return sum(Object.values(refused));
}

/** CPU µs of everything between client and runtime for one unit; nothing where nothing went through or stands between. */
export function pathCost(measured: Measurement, unit: CountUnit): number | undefined {
  const all = Object.values(measured.cpuUs);
  const units = unitsOf(measured, unit);
  return all.length === 0 || units === 0 ? undefined : sum(all) / units;
}

/** CPU µs of all processes of a kind for one unit. */
export function processCost(measured: Measurement, unit: CountUnit, kind: string): number | undefined {
  return costByKind(measured, unit).get(kind);
}

/** CPU µs for one unit by kind of process, as they were started. */
export function costByKind(measured: Measurement, unit: CountUnit): ReadonlyMap<string, number> {
  const units = unitsOf(measured, unit);
  const costs = new Map<string, number>();
  if (units === 0) return costs;
  for (const [name, us] of Object.entries(measured.cpuUs)) {
    const kind = kindOf(name);
    costs.set(kind, (costs.get(kind) ?? 0) + us / units);
  }
  return costs;
}

/** Resident KB at the end of the window, of all processes of a kind or of the whole path. */
export function residentKb(measured: Measurement, kind?: string): number | undefined {
  const ours = Object.entries(measured.rssKb).filter(([name]) => kind === undefined || kindOf(name) === kind);
  return ours.length === 0 ? undefined : sum(ours.map(([, { after }]) => after));
}

/** How much more was resident at the end of the window than before its first connection, of all processes of a kind. */
export function grownKb({ rssKb }: Measurement, kind: string): number | undefined {
  const ours = Object.entries(rssKb).filter(([name]) => kindOf(name) === kind);
  return ours.length === 0 ? undefined : sum(ours.map(([, { before, after }]) => after - before));
}

/** What was delivered of what a paced scenario offered. */
export function deliveredShare({ chunks, offeredChunks }: Measurement): number | undefined {
  return offeredChunks === undefined || offeredChunks === 0 ? undefined : chunks / offeredChunks;
}

/** `gateway 2` is a gateway: two of a kind are told apart by a number behind their name. */
export function kindOf(process: string): string {
  return process.replace(/[ -]?\d+$/, "") || process;
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0);
}
