import type { Clock } from "#shared/process/clock.ts";
import type { Environment } from "#shared/process/config.ts";

export interface Output {
  write(text: string): unknown;
  /** Set where a person looks at it, and how much of it there is room for. */
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
}

/** What a command stands in. */
export interface Surroundings {
  readonly environment: Environment;
  /** Results, and nothing else. */
  readonly stdout: Output;
  /** What is said about them to a person. */
  readonly stderr: Output;
  readonly clock: Clock;
}
