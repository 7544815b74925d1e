/** Microseconds at the median and the 99th percentile, of so many. */
export interface Spread {
  readonly p50: number;
  readonly p99: number;
  readonly count: number;
}

/** What one variant did in one window of one round of one scenario. */
export interface Measurement {
  readonly scenario: string;
  readonly variant: string;
  readonly round: number;
  readonly windowS: number;
  /** Answers that were whole and right within the window, and those of another status than 200, by status. */
  readonly requests: number;
  readonly refused: Readonly<Record<string, number>>;
  /** Answers that were cut, garbled or of the wrong length, and what the first of them was. */
  readonly bad: number;
  readonly firstBad: string;
  readonly chunks: number;
  /** How many chunks a paced scenario should have delivered in the window. */
  readonly offeredChunks?: number;
  /** CPU time in the window, in microseconds, by process. */
  readonly cpuUs: Readonly<Record<string, number>>;
  /** Resident memory in KB before the first connection and at the end of the window, by process. */
  readonly rssKb: Readonly<Record<string, { readonly before: number; readonly after: number }>>;
  /** In microseconds. */
  readonly total?: Spread;
  readonly firstByte?: Spread;
  readonly oneWay?: Spread;
  readonly refusedTotal?: Spread;
  /** Share of the machine's time that the host gave to others during the window. */
  readonly stealShare: number;
  /** What only some scenarios look at. */
  readonly figures?: Readonly<Record<string, number>>;
}
