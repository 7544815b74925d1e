/** Microseconds at the median and the 99th percentile, of `count` values. */
export interface Spread {
  readonly p50: number;
  readonly p99: number;
  readonly count: number;
}

/** The results of one variant in one window of one scenario in one round. */
export interface Measurement {
  readonly scenario: string;
  readonly variant: string;
  readonly round: number;
  readonly windowS: number;
  /** Answers that were complete and correct within the window. */
  readonly requests: number;
  /** Answers with another status than 200, by status. */
  readonly refused: Readonly<Record<string, number>>;
  /** Answers that were cut, garbled or of the wrong length. */
  readonly bad: number;
  readonly firstBad: string;
  readonly chunks: number;
  /** Chunks that a paced scenario should deliver in the window. */
  readonly offeredChunks?: number;
  /** CPU time in the window, in microseconds, by process. */
  readonly cpuUs: Readonly<Record<string, number>>;
  /** Resident memory in KB before the first connection and at the end of the window, by process. */
  readonly rssKb: Readonly<Record<string, { readonly before: number; readonly after: number }>>;
  /** In microseconds. */
  readonly total?: Spread;
  readonly firstByte?: Spread;
  readonly oneWay?: Spread;
  /** Share of the machine's time that its host gave to other machines during the window. */
  readonly stealShare: number;
}

export type Unit = "request" | "chunk";

/** CPU microseconds of all processes between client and runtime, or of one of them, for one request or chunk. */
export function cpuPerUnit(measured: Measurement, unit: Unit, process?: string): number | undefined {
  const units = unit === "chunk" ? measured.chunks : measured.requests;
  const used = process === undefined ? Object.values(measured.cpuUs) : [measured.cpuUs[process]];
  const times = used.filter((us) => us !== undefined);
  if (units === 0 || times.length === 0) return undefined;
  return times.reduce((sum, us) => sum + us, 0) / units;
}
