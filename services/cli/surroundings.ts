import type { Clock } from "#shared/process/clock.ts";
import type { Environment } from "#shared/process/config.ts";

export interface Output {
  write(text: string): unknown;
  /** True if the output is a terminal. `columns` and `rows` are its size. */
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
}

/** The width of a terminal that does not report its own, such as a serial line. */
const columnsUnlessTold = 80;

/** Returns the maximum width of a line in columns. Undefined when the output is no terminal. */
export function widthOf({ isTTY, columns }: Output): number | undefined {
  return isTTY ? columns || columnsUnlessTold : undefined;
}

/** The environment of a command: its variables, its outputs and its clock. */
export interface Surroundings {
  readonly environment: Environment;
  /** Results only. */
  readonly stdout: Output;
  /** Messages to people. */
  readonly stderr: Output;
  readonly clock: Clock;
}
