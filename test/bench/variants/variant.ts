/** A process between client and runtime, whose CPU time and memory count. */
export interface PathProcess {
  /** `gateway`, `nats`, `agent`, `redis`, or the one name of a proxy. Two of a kind are told apart by a number behind it. */
  readonly name: string;
  readonly pid: number;
}

/** One way from a client to the far end, with all of its processes up and ready for the first request. */
export interface RunningVariant extends AsyncDisposable {
  /** Loopback ports that clients may ask, one for each gateway. */
  readonly ports: readonly number[];
  /** What a client has to send beside the usual. */
  readonly headers: Readonly<Record<string, string>>;
  /** Keys of one length that nobody has asked with, for scenarios in which each request comes with another. */
  readonly freshKeys?: readonly string[];
  readonly processes: readonly PathProcess[];
}

export interface StartMeans {
  readonly farEndPort: number;
  /** For logs, data and configuration of this one start; removed afterwards. */
  readonly folder: string;
}

/** Something to be measured beside others. */
export interface Variant {
  /** As `--only` and the tables call it. */
  readonly name: string;
  /** What it is, in one line of the report. */
  readonly title: string;
  /** In how many rounds at most; a plot of how costs grow needs fewer than a ratio that is judged. */
  readonly rounds?: number;
  /** Not part of a run that names nothing. */
  readonly onlyWhenNamed?: boolean;
  /** Name and version of what runs, for the report. */
  version(): Promise<string>;
  /** Why it cannot run on this machine, if that is so; told in the report, and nothing else runs because of it. */
  missing(): Promise<string | undefined>;
  /** Starts fresh processes; resolves when a request through all of them has succeeded. */
  start(means: StartMeans): Promise<RunningVariant>;
}
